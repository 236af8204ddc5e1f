import { isJsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import { paramsOf } from '../message/json-rpc.ts'
import type { Message } from '../message/message.ts'
import { decodeHeader, encodeHeader } from '../message/protocol.ts'

const prefix = 'mcp-param-'

/**
 * Updates headers that mirror arguments (MCP 2026-07-28, Custom Headers from Tool Parameters) after a guard
 * has changed these. A header with a removed value, or with a value of several arguments, is removed: the
 * target then refuses the call, because the header is missing.
 */
export function withMirroredHeaders(headers: Headers, before: Message, after: Message): Headers {
  const names = Object.keys(headers).filter((name) => name.startsWith(prefix))
  if (names.length === 0) return headers
  const previous = textsOf(before)
  const current = textsOf(after)
  const edited: Headers = { ...headers }
  for (const name of names) {
    const value = decodeHeader(firstHeader(headers, name) ?? '')
    const paths = [...previous].flatMap(([path, text]) => (text === value ? [path] : []))
    const values = new Set(paths.map((path) => current.get(path)))
    const [only] = values
    if (paths.length === 0 || (values.size === 1 && only === value)) continue
    if (values.size === 1 && only !== undefined) edited[name] = encodeHeader(only)
    else delete edited[name]
  }
  return edited
}

/** Arguments that headers can mirror, by path. */
function textsOf({ value }: Message): Map<string, string> {
  const texts = new Map<string, string>()
  const collect = (path: readonly string[], member: JsonValue | undefined) => {
    if (isJsonObject(member))
      for (const [name, inner] of Object.entries(member)) collect([...path, name], inner)
    else if (member !== null && member !== undefined && !Array.isArray(member))
      texts.set(JSON.stringify(path), String(member))
  }
  collect([], paramsOf(value)['arguments'])
  return texts
}
