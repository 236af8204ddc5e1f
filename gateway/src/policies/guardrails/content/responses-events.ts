import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import { logprobsPath, numberOf, objectsIn, type StreamPiece, stringOf } from './content-reader.ts'
import { isReasoning } from './part-types.ts'
import { textsOfPart } from './parts.ts'
import type { Reading } from './reading.ts'

/** Receiver of the text pieces of an event. */
export type PieceSink = { onPiece(piece: StreamPiece): void; reading: Reading }

/** Part numbers of command output within an element: two per command. */
const firstCommand = 2_000_000
const transcriptPart = 3_000_000

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

/** Reports the text of an event. */
export function reportText(event: JsonObject, element: number, { onPiece: found, reading }: PieceSink): void {
  const { type, delta, output, content_index: index } = event
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
    found({ element, part: command + offset, text, path: [...path, name], repeats })
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
  if (typeof type === 'string' && isReasoning(type)) return
  const at = { element: numberOf(event['output_index'], 0), part: numberOf(event['content_index'], 0) }
  for (const { text, path, logprobs: echo } of textsOfPart(part, ['part'], reading)) {
    found({ ...at, text, path, repeats: true, logprobs: echo })
  }
}
