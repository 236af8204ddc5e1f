import { isObject } from '../../../schema-form/model/value.ts'
import type { Transport } from '../queries.ts'

export const transports = ['mcp', 'stdio', 'sse', 'openapi'] as const satisfies readonly Transport[]

/** Transport of a configured server: the field that it has. */
export function transportOf(value: unknown): Transport {
  if (!isObject(value)) return 'mcp'
  return transports.find((name) => value[name] !== undefined) ?? 'mcp'
}

/** First value of a new server with a transport. */
export function blankServer(transport: Transport, name: unknown): Readonly<Record<string, unknown>> {
  const start = typeof name === 'string' && name !== '' ? { name } : {}
  switch (transport) {
    case 'stdio':
      return { ...start, stdio: { cmd: 'npx', args: ['-y', ''] } }
    case 'mcp':
      return { ...start, mcp: { host: 'https://' } }
    case 'sse':
      return { ...start, sse: { host: 'https://' } }
    case 'openapi':
      return { ...start, openapi: { host: 'https://', schema: { url: 'https://' } } }
  }
}
