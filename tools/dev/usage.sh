# shellcheck shell=bash
# Sourced by scripts: asked for help, one prints the comment at its top, and ends.
case ${1:-} in
-h | --help)
  sed -n '2,/^[^#]/{/^[^#]/d;s/^# \{0,1\}//p}' "$0"
  exit
  ;;
esac
