import { connectionFields } from './connection-fields.ts'
import type { Headers } from './headers.ts'

/**
 * Whether a status is of the interim answers that are passed on. 100 and 101 are not: the edge gives them itself. The
 * others are hints, so one that cannot be written is left out, and the final answer does not depend on it.
 */
export function isForwardedInformational(status: number): boolean {
  return status > 101 && status < 200
}

/** The fields of an interim answer, as lines; without those that would speak of this connection or of a body. */
export function informationalFields(headers: Headers): [name: string, value: string][] {
  return Object.entries(headers)
    .filter(([name]) => !connectionFields.has(name) && name !== 'content-length' && name !== 'trailer')
    .flatMap(fieldLines)
}

/** A list is sent as one line for each of its values. */
export function fieldLines([name, value]: [string, string | string[]]): [name: string, value: string][] {
  return typeof value === 'string' ? [[name, value]] : value.map((one) => [name, one])
}
