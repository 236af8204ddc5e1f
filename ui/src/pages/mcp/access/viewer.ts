import { isObject } from '../../../schema-form/model/value.ts'
import type { McpViewer } from '../queries.ts'

/** Texts of the form: JSON objects, and a list of names. */
export type ViewerTexts = {
  readonly claims: string
  readonly apiKey: string
  readonly targets: string
  readonly source: string
  readonly headers: string
}

export type ViewerMistakes = Partial<Record<keyof ViewerTexts, string>>

export type ReadViewer =
  | { readonly kind: 'viewer'; readonly viewer: McpViewer }
  | { readonly kind: 'mistakes'; readonly mistakes: ViewerMistakes }

export const noTexts: ViewerTexts = { claims: '', apiKey: '', targets: '', source: '', headers: '' }

/** Reads the form. Empty texts are absent: a client without a token has no claims. */
export function readViewer(texts: ViewerTexts): ReadViewer {
  const mistakes: Record<string, string> = {}
  const viewer: Record<string, unknown> = {}
  for (const name of ['claims', 'apiKey', 'headers'] as const) {
    const text = texts[name].trim()
    if (text === '') continue
    const value = parsed(text)
    if (isObject(value)) viewer[name] = value
    else mistakes[name] = 'must be a JSON object, such as {"sub": "ada"}'
  }
  const targets = texts.targets.split(/[\s,]+/).filter((name) => name !== '')
  if (targets.length > 0) viewer['allowedTargets'] = targets
  const source = texts.source.trim()
  if (source !== '') viewer['source'] = source
  if (Object.keys(mistakes).length > 0) return { kind: 'mistakes', mistakes }
  return { kind: 'viewer', viewer }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The form in the query of an address, so that a link displays the same lists. */
export function textsOf(parameters: URLSearchParams): ViewerTexts {
  return {
    claims: parameters.get('claims') ?? '',
    apiKey: parameters.get('apiKey') ?? '',
    targets: parameters.get('targets') ?? '',
    source: parameters.get('source') ?? '',
    headers: parameters.get('headers') ?? '',
  }
}

export function queryOf(texts: ViewerTexts): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).filter(([, text]) => text.trim() !== ''))
}
