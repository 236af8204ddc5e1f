import { createHash, randomBytes } from 'node:crypto'

/** RFC 6455 section 1.3. */
const keySuffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** The version of the protocol, in `sec-websocket-version`. */
export const websocketVersion = '13'

/** A new value of `sec-websocket-key`. */
export function newWebsocketKey(): string {
  return randomBytes(16).toString('base64')
}

/** Whether a value of `sec-websocket-key` is 16 bytes in base64. */
export function isWebsocketKey(key: string | undefined): key is string {
  return key !== undefined && /^[A-Za-z0-9+/]{22}==$/.test(key)
}

/** The value of `sec-websocket-accept` for a key (RFC 6455 section 4.2.2). */
export function acceptOf(key: string): string {
  return createHash('sha1')
    .update(key + keySuffix)
    .digest('base64')
}

/** The subprotocols in a value of `sec-websocket-protocol`. */
export function subprotocolsIn(value: string | string[] | undefined): string[] {
  const text = Array.isArray(value) ? value.join(',') : (value ?? '')
  return text
    .split(',')
    .map((protocol) => protocol.trim())
    .filter((protocol) => protocol !== '')
}
