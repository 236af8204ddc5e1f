# The smallest MCP server, to be run a thousand times: it answers `initialize` and nothing else.
while read -r line; do
  id=${line##*\"id\":}
  id=${id%%[,\}]*}
  case $line in
  *'"initialize"'*)
    result='{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}'
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
    ;;
  esac
done
