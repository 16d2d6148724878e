"""Talks to a language server as an editor does: `lsp.py SERVER FILE WORD...`.

Opens FILE and prints its diagnostics; then, for each WORD, what the server says
when the pointer is at its first occurrence; `WORD?` asks what may follow it
instead, and what each is, and `WORD@` where it is defined.  Line and column count from 1.
"""

import json
import subprocess
import sys


class Server:
    def __init__(self, command):
        self.process = subprocess.Popen([command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.number = 0

    def send(self, **message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body))
        self.process.stdin.write(body)
        self.process.stdin.flush()

    def read(self):
        length = 0
        while (line := self.process.stdout.readline().strip()):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if not length:
            sys.exit("the server has ended")
        return json.loads(self.process.stdout.read(length))

    def await_message(self, is_it):
        while True:
            message = self.read()
            if is_it(message):
                return message

    def ask(self, method, **params):
        self.number += 1
        number = self.number
        self.send(id=number, method=method, params=params)
        answer = self.await_message(lambda one: one.get("id") == number)
        if "error" in answer:
            sys.exit(f"{method}: {answer['error']}")
        return answer["result"]

    def tell(self, method, **params):
        self.send(method=method, params=params)


def place(position):
    return f"{position['line'] + 1}:{position['character'] + 1}"


def main():
    command, file, *words = sys.argv[1:]
    with open(file, encoding="utf-8") as f:
        text = f.read()
    uri = "file:///tmp/module.mlir"
    document = {"uri": uri}
    server = Server(command)
    able = server.ask("initialize", processId=None, rootUri=None,
                      capabilities={})["capabilities"]
    print("can", ", ".join(sorted(key for key in able if able[key])))
    server.tell("initialized")
    server.tell("textDocument/didOpen", textDocument={
        "uri": uri, "languageId": "mlir", "version": 1, "text": text})
    found = server.await_message(
        lambda one: one.get("method") == "textDocument/publishDiagnostics")
    for one in found["params"]["diagnostics"]:
        print("diagnostic", place(one["range"]["start"]), one["message"])
    for word in words:
        at = word.rstrip("?@")
        index = text.index(at) + (len(at) if word.endswith("?") else 1)
        before = text[:index]
        position = {"line": before.count("\n"),
                    "character": index - before.rfind("\n") - 1}
        where = {"textDocument": document, "position": position}
        if word.endswith("?"):
            items = server.ask("textDocument/completion", **where)["items"]
            print("behind", at, "may come",
                  ", ".join(sorted(item["label"] for item in items)))
            for item in items:
                if "documentation" in item:
                    print(item["label"], "is", item["documentation"])
        elif word.endswith("@"):
            for one in server.ask("textDocument/definition", **where):
                print(at, "is defined at", place(one["range"]["start"]))
        else:
            answer = server.ask("textDocument/hover", **where)
            print("hover", at + ":", json.dumps(
                answer and answer["contents"]["value"]))
    server.ask("shutdown")
    server.tell("exit")
    server.process.stdin.close()
    print("ended with", server.process.wait(timeout=60))


if __name__ == "__main__":
    main()
