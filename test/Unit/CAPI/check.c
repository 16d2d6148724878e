/*===- check.c - libattn as a C program sees it ---------------------------===*\
|* Plans, compiles to a cubin, provokes every kind of error; needs no GPU.
|* Prints what it found for FileCheck.
\*===----------------------------------------------------------------------===*/

#include "attn-c/Attn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const program =
    "!q = tensor<1x2x?x64xbf16>\n"
    "func.func @attention(%q: !q, %k: !q, %v: !q) -> !q {\n"
    "  %o = attn.forward %q, %k, %v mask(causal) : !q, !q, !q -> !q\n"
    "  return %o : !q\n"
    "}\n";

static void show(const char *what, attn_status *status) {
  printf("%s: %d %s\n", what, (int)status->code,
         status->message ? status->message : "-");
  attn_status_clear(status);
}

static void texts(const attn_problem *planned) {
  attn_status status = {0, NULL};
  attn_problem problem = *planned;
  char *text = NULL;
  attn_machines_json(&text, &status);
  printf("machines: %.60s\n", text ? strstr(text, "\"name\"") : "-");
  attn_free(text);
  attn_plan_text(&problem, "h100_sxm", &text, &status);
  printf("explained: %.40s\n", text ? text : "-");
  attn_free(text);
  problem.batch = problem.queries = problem.keys = -1;
  problem.has_scale = 1;
  problem.scale = 0.125;
  attn_problem_text(&problem, &text, &status);
  show("text", &status);
  printf("%s", text ? text : "-");
  attn_free(text);
  problem.direction = "backward";
  problem.deterministic = problem.with_dlse = 1;
  attn_problem_text(&problem, &text, &status);
  show("text backward", &status);
  printf("%s", text ? text : "-");
  attn_free(text);
  problem.direction = NULL;
  attn_problem_text(&problem, &text, &status);
  show("text direction", &status);
  problem.deterministic = problem.with_dlse = 0;
  problem.batch = -2;
  attn_problem_text(&problem, &text, &status);
  show("text size", &status);
  problem.batch = 1;
  problem.alignment = 3;
  attn_problem_text(&problem, &text, &status);
  show("text alignment", &status);
}

/* Few rows have a schedule of their own, and so has what one gives of it. */
static void bound(const attn_problem *planned) {
  static const char *const given[] = {NULL, "flash, query = 64",
                                      "flash, query = 7"};
  attn_status status = {0, NULL};
  attn_problem problem = *planned;
  size_t i;
  for (i = 0; i < 6; ++i) {
    char *text = NULL;
    problem.batch = i < 3 ? 8 : 1;
    problem.queries = problem.keys = i < 3 ? 4096 : 512;
    attn_bound_schedule(&problem, "h100_sxm", given[i % 3], &text, &status);
    printf("bound for %d: %s\n", (int)problem.queries, text ? text : "-");
    attn_free(text);
    if (status.code)
      show("bound", &status);
  }
}

static void plan(void) {
  attn_status status = {0, NULL};
  char *json = NULL;
  attn_problem problem;
  memset(&problem, 0, sizeof(problem));
  problem.struct_size = sizeof(problem);
  problem.dtype = "bf16";
  problem.batch = 4;
  problem.heads = 32;
  problem.kv_heads = 8;
  problem.queries = problem.keys = 4096;
  problem.head_dim = problem.head_dim_v = 128;
  problem.mask = "causal";
  attn_plan_json(&problem, "h100_sxm", &json, &status);
  printf("plan has regime %d\n",
         json && strstr(json, "\"regime\": \"large_cache\"") != NULL);
  attn_free(json);
  show("plan", &status);

  /* A caller from before there was a direction. */
  problem.struct_size = offsetof(attn_problem, direction);
  problem.direction = "sideways";
  attn_plan_json(&problem, "h100_sxm", &json, &status);
  printf("plan forward %d\n",
         json && strstr(json, "\"direction\": \"forward\"") != NULL);
  attn_free(json);
  show("plan of old", &status);
  problem.struct_size = sizeof(problem);
  attn_plan_json(&problem, "h100_sxm", &json, &status);
  show("plan sideways", &status);
  problem.direction = "backward";
  attn_plan_json(&problem, "h100_sxm", &json, &status);
  printf("plan backward %d\n",
         json && strstr(json, "\"kernel\": \"split_backward_") != NULL);
  attn_free(json);
  show("plan backward", &status);
  problem.with_lse_low = 1;
  attn_plan_json(&problem, "h100_sxm", &json, &status);
  printf("plan low %d\n", json && strstr(json, "\"lse_low\": true") != NULL);
  attn_free(json);
  problem.struct_size = offsetof(attn_problem, with_lse_low);
  attn_plan_json(&problem, "h100_sxm", &json, &status);
  printf("plan low of old %d\n",
         json && strstr(json, "\"lse_low\": true") != NULL);
  attn_free(json);
  problem.struct_size = sizeof(problem);
  attn_problem_text(&problem, &json, &status);
  printf("text low %d\n",
         json && strstr(json, "%lse lse_low(%lse_low : memref<") != NULL);
  attn_free(json);
  problem.with_lse_low = 0;
  problem.kv_dtype = "f8e4m3";
  attn_plan_json(&problem, "h100_sxm", &json, &status);
  show("plan backward of two types", &status);
  problem.direction = NULL;
  problem.mask = "causal_bottom_right";
  attn_plan_json(&problem, "h100_sxm", &json, &status);
  printf("plan of two types %d\n",
         json && strstr(json, "\"kv_dtype\": \"f8e4m3\"") != NULL);
  attn_free(json);
  problem.kv_dtype = NULL;
  problem.mask = "causal";

  attn_plan_json(&problem, "h1000", &json, &status);
  show("plan machine", &status);
  texts(&problem);
  bound(&problem);
  problem.head_dim = 0;
  attn_plan_json(&problem, "h100_sxm", &json, &status);
  show("plan dim", &status);
  problem.mask = "diagonal";
  attn_plan_json(&problem, "h100_sxm", &json, &status);
  show("plan mask", &status);
  problem.struct_size = 4;
  attn_plan_json(&problem, "h100_sxm", &json, &status);
  show("plan struct", &status);
}

static void compile(void) {
  attn_status status = {0, NULL};
  attn_executable *executable = NULL;
  char *json = NULL;
  const char *bytes = NULL;
  size_t size = 0;
  attn_compile(program, strlen(program), "rtx_4090", NULL, NULL, &executable,
               &status);
  show("compile", &status);
  attn_executable_info(executable, &json, &status);
  printf("info: %s\n", json ? json : "-");
  attn_free(json);
  attn_executable_cubin(executable, 0, &bytes, &size, &status);
  printf("cubin 0: %s\n",
         size > 4 && memcmp(bytes, "\177ELF", 4) == 0 ? "ELF" : "no");
  attn_executable_cubin(executable, 1, &bytes, &size, &status);
  printf("cubin 1: %s\n", bytes ? "some" : "none");
  attn_executable_ptx(executable, 0, &bytes, &size, &status);
  printf("ptx: %.40s\n", bytes ? strstr(bytes, "// Gen") : "-");
  attn_call(executable, NULL, 0, NULL, &status);
  show("call", &status);
  attn_executable_destroy(executable);
}

/* PTX is enough, but a ptxas that somebody named must be one. */
static void withoutPtxas(void) {
  attn_status status = {0, NULL};
  attn_executable *executable = NULL;
  char *json = NULL;
  setenv("ATTN_PTXAS", "/bin/true", 1);
  attn_compile(program, strlen(program), NULL, NULL, NULL, &executable,
               &status);
  show("no ptxas", &status);
  unsetenv("ATTN_PTXAS");
  attn_assembler_set("/no/ptxas", &status);
  show("set ptxas", &status);
  attn_assembler_set("", NULL);
  attn_compile(program, strlen(program), NULL, NULL, NULL, &executable,
               &status);
  show("without ptxas", &status);
  attn_executable_info(executable, &json, &status);
  printf("%s\n", json ? json : "-");
  attn_free(json);
  attn_executable_destroy(executable);
  attn_assembler_set(NULL, NULL);
}

static void compileWrong(void) {
  static const char *const wrong[] = {
      "func.func @f(", "func.func private @f()",
      "func.func @f() { return }\nfunc.func @g() { return }"};
  attn_status status = {0, NULL};
  attn_executable *executable = NULL;
  size_t i;
  for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    attn_compile(wrong[i], strlen(wrong[i]), NULL, NULL, NULL, &executable,
                 &status);
    show("wrong", &status);
  }
  attn_compile(program, strlen(program), "h1000", NULL, NULL, &executable,
               &status);
  show("wrong machine", &status);
  attn_compile(program, strlen(program), NULL, "flash, query = 7", NULL,
               &executable, &status);
  show("wrong schedule", &status);
  withoutPtxas();
  attn_compile(NULL, 0, NULL, NULL, NULL, &executable, &status);
  show("no text", &status);
  printf("without status: %d\n",
         (int)attn_compile(NULL, 0, NULL, NULL, NULL, &executable, NULL));
  attn_executable_destroy(NULL);
}

int main(void) {
  printf("version %s\n", attn_version());
  plan();
  compile();
  compileWrong();
  printf("no call frame: %d\n",
         attn_xla_forward(NULL) == NULL && attn_xla_backward(NULL) == NULL);
  return 0;
}
