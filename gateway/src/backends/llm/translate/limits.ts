import { GatewayError } from '../../../lib/gateway-error.ts'
import type { JsonValue } from '../../../lib/json/json.ts'
import { invalidResponse } from './upstream-error.ts'

// Limits of what a response of an upstream expands to: streams repeat its ids and names in their events.

/** Maximum characters of ids and of names of tools and models. */
const maxNameLength = 128

/** Maximum content blocks or output items of a response, and fragments of tool calls of one event. */
const maxItems = 1024

/** Maximum characters of texts that a stream retains or repeats: about a million tokens. */
const maxTextLength = 4 * 1024 * 1024

/** Maximum characters of retained token probabilities. */
const maxLogprobsLength = 32 * 1024 * 1024

/** An id or model name; empty if it is absent or so long that a generated one takes its place. */
export function shortName(value: JsonValue | undefined): string {
  return typeof value === 'string' && value.length <= maxNameLength ? value : ''
}

/** Name of a tool, empty if absent. Throws `upstream_invalid` for a name that no API permits. */
export function toolName(value: JsonValue | undefined): string {
  if (typeof value !== 'string') return ''
  if (value.length > maxNameLength)
    throw invalidResponse(`the name of a tool is longer than ${maxNameLength} characters`)
  return value
}

/** The index of a tool call or block; undefined if absent or not an index. */
export function indexOf(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined
}

/** Fragments of tool calls of one event. Throws `upstream_invalid` and `upstream_too_large`. */
export function fragmentsOf(calls: JsonValue | undefined): readonly JsonValue[] {
  if (calls === undefined || calls === null) return []
  if (!Array.isArray(calls)) throw invalidResponse('tool_calls is not a list')
  if (calls.length > maxItems) throw tooLarge(`an event has more than ${maxItems} fragments of tool calls`)
  return calls
}

/** Counts what a stream retains. Functions throw `upstream_too_large` at their limit. */
export type StreamBudget = {
  /** Counts a content block, an output item or a part of one. */
  addItem(): void
  /** Counts characters of texts. */
  addText(length: number): void
  /** Counts characters of token probabilities. */
  addLogprobs(length: number): void
}

export function createStreamBudget(): StreamBudget {
  let items = 0
  let text = 0
  let logprobs = 0
  return {
    addItem() {
      items += 1
      if (items > maxItems) throw tooLarge(`the response has more than ${maxItems} parts`)
    },
    addText(length) {
      text += length
      if (text > maxTextLength) throw tooLarge(`the response is longer than ${maxTextLength} characters`)
    },
    addLogprobs(length) {
      logprobs += length
      if (logprobs > maxLogprobsLength)
        throw tooLarge(`the token probabilities are longer than ${maxLogprobsLength} characters`)
    },
  }
}

function tooLarge(reason: string): GatewayError {
  return new GatewayError('upstream_too_large', reason)
}
