import { isCredentialName } from '../../lib/http-token.ts'
import { isMap, mapEntries, noOverload } from '../closures/values.ts'
import { Failure } from '../failure.ts'
import { spendWork } from '../work-budget.ts'
import type { CelFunction } from './function.ts'

/** Views of `request.headers` and `response.headers`: maps of texts, or of lists for repeated fields. */
export const headerFunctions: readonly CelFunction[] = [
  view('raw', (_, values) => [...values]),
  view('split', (_, values) => values.flatMap((value) => value.split(',').map((part) => part.trim()))),
  view('redacted', (name, values) => {
    const shown = isCredentialName(name) ? values.map(() => '<redacted>') : [...values]
    return shown.length === 1 ? shown[0] : shown
  }),
  {
    name: 'cookie',
    isMethod: true,
    arity: 2,
    apply(headers, name) {
      if (!isMap(headers) || typeof name !== 'string') return noOverload('cookie', headers, name)
      const [, value] = mapEntries(headers).find(([key]) => key === 'cookie') ?? []
      return cookieOf(textsOf(value) ?? [], name) ?? new Failure(`no such key: ${name}`)
    },
  },
]

/** `join()` of headers: one text for each field. */
export function joinHeaders(headers: object): unknown {
  return mapFields('join', headers, (_, values) => values.join(','))
}

type ViewField = (name: string, values: readonly string[]) => unknown

function view(name: string, field: ViewField): CelFunction {
  return { name, isMethod: true, arity: 1, apply: (headers) => mapFields(name, headers, field) }
}

function mapFields(name: string, headers: unknown, field: ViewField): unknown {
  if (!isMap(headers)) return noOverload(name, headers)
  const fields = new Map<unknown, unknown>()
  for (const [key, value] of mapEntries(headers)) {
    const texts = textsOf(value)
    if (texts === undefined) return new Failure(`${name}() requires headers`)
    for (const text of texts) spendWork(200 + text.length * 40)
    fields.set(key, field(String(key), texts))
  }
  return fields
}

function textsOf(value: unknown): string[] | undefined {
  if (typeof value === 'string') return [value]
  return Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : undefined
}

/** The first cookie of a name (RFC 6265 section 4.2.1). */
function cookieOf(fields: readonly string[], name: string): string | undefined {
  for (const field of fields) {
    spendWork(field.length * 20)
    for (const pair of field.split(';')) {
      const at = pair.indexOf('=')
      if (at >= 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim()
    }
  }
  return undefined
}
