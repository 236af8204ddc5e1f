import type { JsonObject } from '../../../../lib/json/json.ts'
import type { Phase } from '../../guard.ts'
import type { ContentReader, GuardedText, TextPart } from '../content-reader.ts'
import type { Reading } from '../reading.ts'
import { type ContentScope, isOptional, scopeOfRole } from './content-scope.ts'

/**
 * Reads the texts of a body. If guards have scopes, each text has one scope, and those of one message have a
 * common `group`.
 */
export function readTexts(reader: ContentReader, body: JsonObject, reading: Reading): GuardedText[] {
  const { phase, scopes } = reading
  const texts = phase === 'request' ? reader.request(body, reading) : reader.reply(body, reading)
  return scopes === undefined ? texts : texts.flatMap((text) => splitByScope(text, phase))
}

function splitByScope(text: GuardedText, phase: Phase): GuardedText[] {
  const { role, separator, parts } = text
  const own = text.scope ?? (phase === 'request' ? scopeOfRole(role) : 'messages')
  const runs = runsOf(parts, own)
  const [first] = runs
  if (first === undefined || (runs.length === 1 && first.scope === own)) return [{ ...text, scope: own }]
  const group = { role, separator }
  const visible = runs.filter(({ scope }) => !isOptional(scope, phase))
  const optional = runs.filter(({ scope }) => isOptional(scope, phase))
  const logprobs = parts.find((part) => part.logprobs !== undefined)?.logprobs
  const split = ({ scope, parts: ofRun }: Run): GuardedText => ({
    role: scope === 'toolOutput' ? 'tool' : role,
    separator,
    // Log probabilities of a message have the tokens of all its texts.
    parts: ofRun.map((part, index) =>
      index === 0 && logprobs ? { ...part, logprobs: part.logprobs ?? logprobs } : part,
    ),
    scope,
  })
  // A message without visible text remains, because it has a place in calls of webhooks.
  const shown: GuardedText[] =
    visible.length === 0
      ? [{ role, separator, parts: [], scope: own }]
      : visible.map((run) => ({ ...split(run), group }))
  return [...shown, ...optional.map(split)]
}

type Run = { readonly scope: ContentScope; readonly parts: TextPart[] }

/** Successive parts of equal scope. */
function runsOf(parts: readonly TextPart[], own: ContentScope): Run[] {
  const runs: Run[] = []
  for (const part of parts) {
    const { scope = own } = part
    const last = runs.at(-1)
    if (last?.scope === scope) last.parts.push(part)
    else runs.push({ scope, parts: [part] })
  }
  return runs
}
