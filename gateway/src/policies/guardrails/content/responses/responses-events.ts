import { isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'
import { CheckFailure } from '../../guard.ts'
import {
  logprobsPath,
  numberOf,
  objectsIn,
  optionalElement,
  type StreamPiece,
  stringOf,
} from '../content-reader.ts'
import { isReasoning } from '../part-types.ts'
import { textsOfPart } from '../parts.ts'
import type { Reading } from '../reading.ts'
import type { ContentScope } from '../scopes/content-scope.ts'

/** Receiver of the text pieces of an event. */
export type PieceSink = { onPiece(piece: StreamPiece): void; reading: Reading }

/** Part numbers of command output within an element: two per command. */
const firstCommand = 2_000_000
const transcriptPart = 3_000_000
/** First part number of the summary of an element. */
export const summaryPart = 4_000_000
const firstCommandInput = 5_000_000

/** Location of the text of an event: an addition, or a repetition of the full text. */
type TextEvent = { member: string; repeats: boolean; part?: number; hasEcho?: boolean }

const textEvents: ReadonlyMap<unknown, TextEvent> = new Map<unknown, TextEvent>([
  ['response.output_text.delta', { member: 'delta', repeats: false, hasEcho: true }],
  ['response.output_text.done', { member: 'text', repeats: true, hasEcho: true }],
  ['response.refusal.delta', { member: 'delta', repeats: false }],
  ['response.refusal.done', { member: 'refusal', repeats: true }],
  ['response.audio.transcript.delta', { member: 'delta', repeats: false, part: transcriptPart }],
  ['response.audio.transcript.done', { member: 'transcript', repeats: true, part: transcriptPart }],
])

/**
 * Location of arguments and reasoning, which guards with their scope receive. `index` is the member of the
 * part.
 */
type OptionalEvent = {
  scope: ContentScope
  member: string
  repeats: boolean
  first?: number
  index?: string
}

const optionalEvents: ReadonlyMap<unknown, OptionalEvent> = new Map<unknown, OptionalEvent>([
  ...argumentEvents('function_call_arguments', 'arguments'),
  ...argumentEvents('mcp_call_arguments', 'arguments'),
  ...argumentEvents('custom_tool_call_input', 'input'),
  ...argumentEvents('code_interpreter_call_code', 'code'),
  ...argumentEvents('apply_patch_call_operation_diff', 'diff'),
  ...argumentEvents('shell_call_command', 'command', { first: firstCommandInput, index: 'command_index' }),
  ...reasoningEvents('reasoning_text', 0, 'content_index'),
  ...reasoningEvents('reasoning_summary_text', summaryPart, 'summary_index'),
])

function argumentEvents(
  name: string,
  member: string,
  place: { first?: number; index?: string } = {},
): [string, OptionalEvent][] {
  return [
    [`response.${name}.delta`, { scope: 'toolInput', member: 'delta', repeats: false, ...place }],
    [`response.${name}.done`, { scope: 'toolInput', member, repeats: true, ...place }],
  ]
}

function reasoningEvents(name: string, first: number, index: string): [string, OptionalEvent][] {
  return [
    [`response.${name}.delta`, { scope: 'reasoning', member: 'delta', repeats: false, first, index }],
    [`response.${name}.done`, { scope: 'reasoning', member: 'text', repeats: true, first, index }],
  ]
}

/** Reports arguments and reasoning of an event, if a guard has their scope. */
function reportOptional(event: JsonObject, element: number, { onPiece: found, reading }: PieceSink): void {
  const known = optionalEvents.get(event['type'])
  if (known === undefined || reading.scopes?.has(known.scope) !== true) return
  const { scope, member, repeats, first = 0, index = '' } = known
  const text = event[member]
  if (typeof text !== 'string') {
    // A delta that is not text would pass unchecked.
    if (text !== undefined && text !== null) throw new CheckFailure('an unreadable event')
    return
  }
  const part = first + numberOf(event[index], 0)
  found({ element: optionalElement(element, scope), part, text, path: [member], repeats, scope })
}

/** Reports the text of an event. */
export function reportText(event: JsonObject, element: number, { onPiece: found, reading }: PieceSink): void {
  const { type, delta, output, content_index: index } = event
  if (reading.scopes !== undefined) reportOptional(event, element, { onPiece: found, reading })
  const known = textEvents.get(type)
  if (known !== undefined) {
    const { member, repeats, part = numberOf(index, 0), hasEcho } = known
    const echo = hasEcho ? logprobsPath(event, []) : undefined
    found({ element, part, text: stringOf(event[member]), path: [member], repeats, logprobs: echo })
  } else if (type === 'response.shell_call_output_content.delta') {
    reportOutput(delta, event, { path: ['delta'], repeats: false, found })
  } else if (type === 'response.shell_call_output_content.done') {
    for (const [position, part] of objectsIn(output)) {
      reportOutput(part, event, { path: ['output', position], repeats: true, found })
    }
  } else if (typeof type === 'string' && typeof delta === 'string' && !uncheckedDeltas.has(type)) {
    reading.reportUnknown(type)
  }
}

type OutputReport = { path: (string | number)[]; repeats: boolean; found(piece: StreamPiece): void }

function reportOutput(output: unknown, event: JsonObject, { path, repeats, found }: OutputReport): void {
  if (!isJsonObject(output)) return
  const element = numberOf(event['output_index'], 0)
  const command = firstCommand + 2 * numberOf(event['command_index'], 0)
  for (const [offset, name] of ['stdout', 'stderr'].entries()) {
    const text = output[name]
    if (typeof text !== 'string') continue
    found({ element, part: command + offset, text, path: [...path, name], repeats, scope: 'toolOutput' })
  }
}

/** Deltas of tool calls, reasoning and audio. */
const uncheckedDeltas: ReadonlySet<string> = new Set([
  // Not in a published schema.
  'response.apply_patch_call_operation_diff.delta',
  'response.audio.delta',
  'response.code_interpreter_call_code.delta',
  'response.custom_tool_call_input.delta',
  'response.function_call_arguments.delta',
  'response.mcp_call_arguments.delta',
  'response.reasoning_summary_text.delta',
  'response.reasoning_text.delta',
  'response.shell_call_command.delta',
])

/** Reports the texts of a content part that an event starts or completes. */
export function reportPart(
  part: JsonObject,
  event: JsonObject,
  { onPiece: found, reading }: PieceSink,
): void {
  const { type } = part
  const element = numberOf(event['output_index'], 0)
  if (typeof type === 'string' && isReasoning(type)) {
    if (reading.scopes?.has('reasoning') === true)
      reportReasoningPart(part, event, { onPiece: found, reading })
    return
  }
  const at = { element, part: numberOf(event['content_index'], 0) }
  for (const { text, path, logprobs: echo } of textsOfPart(part, ['part'], reading)) {
    found({ ...at, text, path, repeats: true, logprobs: echo })
  }
}

function reportReasoningPart(
  part: JsonObject,
  event: JsonObject,
  { onPiece: found, reading }: PieceSink,
): void {
  const { content_index: content, summary_index: summary } = event
  const number = summary === undefined ? numberOf(content, 0) : summaryPart + numberOf(summary, 0)
  const element = optionalElement(numberOf(event['output_index'], 0), 'reasoning')
  for (const { text, path } of textsOfPart(part, ['part'], reading)) {
    found({ element, part: number, text, path, repeats: true, scope: 'reasoning' })
  }
}
