import { connectionFields } from './connection-fields.ts'
import type { Headers } from './headers.ts'

/**
 * Whether an informational response (1xx) is forwarded. The edge itself sends 100 and 101. The others are
 * optional: an invalid one is dropped, and the final response does not depend on it.
 */
export function isForwardedInformational(status: number): boolean {
  return status > 101 && status < 200
}

/** Field lines of an informational response, without connection-specific fields and fields about a body. */
export function informationalFields(headers: Headers): [name: string, value: string][] {
  return Object.entries(headers)
    .filter(([name]) => !connectionFields.has(name) && name !== 'content-length' && name !== 'trailer')
    .flatMap(fieldLines)
}

/** A list is sent as one line per value. */
export function fieldLines([name, value]: [string, string | string[]]): [name: string, value: string][] {
  return typeof value === 'string' ? [[name, value]] : value.map((one) => [name, one])
}
