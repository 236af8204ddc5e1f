import { isJsonObject, type JsonObject, parseJsonObject } from '../../../lib/json/json.ts'
import { endOfString } from '../../../lib/json/string.ts'
import type { Usage } from '../../../pipeline/facts/llm-facts.ts'
import type { Endpoint } from '../request/endpoints.ts'
import { endsContent } from '../request/output-limit.ts'
import { usageIn } from './usage.ts'

/** Observer of an event stream: usage, generated text and end marker. */
export type StreamWatch = {
  /** `open` until the end marker of the API (`ended`) or an error event of the upstream (`failed`). */
  readonly state: 'open' | 'ended' | 'failed'
  /** Reads complete lines with one character per byte; returns the lines for the client. */
  read(lines: string): string
}

export type StreamWatchOptions = {
  endpoint: Endpoint
  /** Removes the chunk of chat completions that contains only usage. */
  hideUsage: boolean
  onUsage(usage: Usage, message: JsonObject): void
  onGenerated(bytes: number): void
}

/**
 * Observes a stream with a few native searches per chunk; only events with a usage object are parsed. The
 * search texts cannot occur inside JSON strings, where their quotes would be escaped, and a line cannot start
 * there. Search texts start with a letter, because a search for a quote stops at every quote of the JSON.
 */
export function createStreamWatch({
  endpoint,
  hideUsage,
  onUsage,
  onGenerated,
}: StreamWatchOptions): StreamWatch {
  const textKey = endpoint === 'completions' || endpoint === 'generate_content' ? 'text":' : 'delta":'
  const usageKey = usageKeys[endpoint] ?? 'usage"'
  const findState = stateMarkers[endpoint]()
  let state: StreamWatch['state'] = 'open'

  return {
    get state() {
      return state
    },
    read(lines) {
      const generated = generatedBytes(lines, textKey)
      if (generated > 0) onGenerated(generated)
      const visible = readUsage(lines)
      if (state === 'open') state = findState(lines)
      return visible
    },
  }

  function readUsage(lines: string): string {
    let visible = lines
    let hit = lines.indexOf(usageKey)
    while (hit !== -1) {
      const lineEnd = lines.indexOf('\n', hit)
      // Most servers send `"usage":null` in all chunks but the last.
      if (lines[hit - 1] === '"' && valueStartsWith(lines, hit + usageKey.length, '{')) {
        const line = lines.slice(lines.lastIndexOf('\n', hit) + 1, lineEnd + 1)
        const message = parseDataLine(line)
        const usage = message && usageIn(endpoint, message)
        if (usage && message) onUsage(usage, message)
        if (hideUsage && message && isUsageChunk(message)) visible = visible.replace(line, () => '')
        hit = lines.indexOf(usageKey, lineEnd)
      } else hit = lines.indexOf(usageKey, hit + usageKey.length)
    }
    return visible
  }
}

const usageKeys: Readonly<Partial<Record<Endpoint, string>>> = {
  generate_content: 'usageMetadata"',
  invoke: 'amazon-bedrock-invocationMetrics"',
}

type FindState = (lines: string) => StreamWatch['state']

const stateMarkers: Record<Endpoint, () => FindState> = {
  chat: () => openAiState,
  completions: () => openAiState,
  embeddings: () => openAiState,
  count_tokens: () => openAiState,
  gemini_count_tokens: () => openAiState,
  embed_content: () => openAiState,
  batch_embed_contents: () => openAiState,
  predict: () => openAiState,
  generate_content: () => geminiState,
  messages: () => createNamedState(messagesEnds),
  responses: () => createNamedState(responsesEnds),
  converse: () => createNamedState(converseEnds),
  converse_count: () => openAiState,
  invoke: () => createNamedState(invokeEnds),
  titan_embeddings: () => openAiState,
  cohere_embeddings: () => openAiState,
  nova_embeddings: () => openAiState,
  bedrock_rerank: () => openAiState,
  moderations: () => openAiState,
  rerank: () => openAiState,
  rerank_v2: () => openAiState,
  embed: () => openAiState,
  cohere_chat: () => cohereState,
  images: () => typedState('image_generation.completed"'),
  image_edits: () => typedState('image_edit.completed"'),
  image_variations: () => openAiState,
  speech: () => typedState('speech.audio.done"'),
  transcriptions: () => typedState('transcript.text.done"'),
  translations: () => openAiState,
  realtime: () => openAiState,
  files: () => openAiState,
  batches: () => openAiState,
  message_batches: () => openAiState,
  anthropic_files: () => openAiState,
  uploads: () => openAiState,
}

/** Finds the last event by its type, because not all servers name these events. */
function typedState(type: string): FindState {
  return (lines) => {
    const hit = lines.indexOf(type)
    if (hit > 0 && lines[hit - 1] === '"') return 'ended'
    return openAiState(lines) === 'failed' ? 'failed' : 'open'
  }
}

/** An error may be followed by the end marker. Some servers have it in a chunk with other members. */
function openAiState(lines: string): StreamWatch['state'] {
  if (hasError(lines)) return 'failed'
  const done = lines.indexOf('DONE]')
  return done !== -1 && lines[done - 1] === '[' && isFieldAt(lines, 'data:', done - 1) ? 'ended' : 'open'
}

/** Whether an event has an error at its top. */
function hasError(lines: string): boolean {
  let hit = lines.indexOf(errorKey)
  while (hit !== -1) {
    let next = hit + errorKey.length
    // Some servers send a null in all chunks.
    if (lines[hit - 1] === '"' && !valueStartsWith(lines, next, 'n')) {
      next = endOfLine(lines, hit)
      const event = parseDataLine(lines.slice(lines.lastIndexOf('\n', hit) + 1, next))
      if (event !== undefined && (event['error'] ?? null) !== null) return true
    }
    hit = lines.indexOf(errorKey, next)
  }
  return false
}

const errorKey = 'error":'

function endOfLine(lines: string, index: number): number {
  const end = lines.indexOf('\n', index)
  return end === -1 ? lines.length : end
}

/**
 * A stream of Gemini has no end marker. Its events are read at the texts that end a candidate or block a
 * prompt, because arguments of functions may have members of the same name.
 */
function geminiState(lines: string): StreamWatch['state'] {
  for (const key of ['finishReason"', 'blockReason"']) {
    for (let hit = lines.indexOf(key); hit !== -1; hit = lines.indexOf(key, hit + key.length)) {
      const start = lines.lastIndexOf('\n', hit) + 1
      const event = parseDataLine(lines.slice(start, lines.indexOf('\n', hit)))
      if (event !== undefined && endsContent(event)) return 'ended'
    }
  }
  const error = lines.indexOf('"error"')
  if (error === -1) return 'open'
  const event = parseDataLine(lines.slice(lines.lastIndexOf('\n', error) + 1, lines.indexOf('\n', error)))
  return event !== undefined && isJsonObject(event['error']) ? 'failed' : 'open'
}

const cohereFailures: ReadonlySet<unknown> = new Set(['ERROR', 'TIMEOUT'])

/** The last event has its type in the data, and names an error if the response is incomplete. */
function cohereState(lines: string): StreamWatch['state'] {
  const key = 'message-end"'
  for (let hit = lines.indexOf(key); hit !== -1; hit = lines.indexOf(key, hit + key.length)) {
    const start = lines.lastIndexOf('\n', hit) + 1
    const event = parseDataLine(lines.slice(start, lines.indexOf('\n', hit)))
    if (event?.['type'] !== 'message-end') continue
    const { delta } = event
    return isJsonObject(delta) && cohereFailures.has(delta['finish_reason']) ? 'failed' : 'ended'
  }
  return 'open'
}

const messagesEnds: ReadonlyMap<string, StreamWatch['state']> = new Map([
  ['message_stop', 'ended'],
  ['error', 'failed'],
] satisfies [string, StreamWatch['state']][])

/** The last event has the usage. */
const converseEnds: ReadonlyMap<string, StreamWatch['state']> = new Map([
  ['metadata', 'ended'],
  ['exception', 'failed'],
] satisfies [string, StreamWatch['state']][])

/** The event of the gateway behind the last chunk: chunks are of the API of the model. */
const invokeEnds: ReadonlyMap<string, StreamWatch['state']> = new Map([
  ['end', 'ended'],
  ['exception', 'failed'],
] satisfies [string, StreamWatch['state']][])

const responsesEnds: ReadonlyMap<string, StreamWatch['state']> = new Map([
  ['response.completed', 'ended'],
  ['response.incomplete', 'ended'],
  ['response.failed', 'failed'],
  ['error', 'failed'],
] satisfies [string, StreamWatch['state']][])

/** Finds the last event by its name. The event requires data, because a name alone is not an event. */
function createNamedState(ends: ReadonlyMap<string, StreamWatch['state']>): FindState {
  let named: StreamWatch['state'] = 'open'
  return (lines) => {
    let from = 0
    if (named === 'open') {
      let hit = lines.indexOf('event:')
      while (hit !== -1 && named === 'open') {
        from = lines.indexOf('\n', hit)
        if (isLineStart(lines, hit)) named = ends.get(lines.slice(hit + 6, from).trim()) ?? 'open'
        hit = lines.indexOf('event:', from)
      }
    }
    if (named === 'open') return 'open'
    for (let data = lines.indexOf('data:', from); data !== -1; data = lines.indexOf('data:', data + 5)) {
      if (isLineStart(lines, data)) return named
    }
    return 'open'
  }
}

function isLineStart(lines: string, index: number): boolean {
  return index === 0 || lines.charCodeAt(index - 1) === lineFeedCode
}

/** True if the text at `index` is the value of `field` at the start of a line. */
function isFieldAt(lines: string, field: string, index: number): boolean {
  const start = (lines[index - 1] === ' ' ? index - 1 : index) - field.length
  return lines.startsWith(field, start) && isLineStart(lines, start)
}

/** Bytes of the strings at a key, or of generated text in the object at the key. */
function generatedBytes(lines: string, key: string): number {
  let bytes = 0
  let hit = lines.indexOf(key)
  while (hit !== -1) {
    let next = hit + key.length
    if (lines.charCodeAt(hit - 1) === quote) {
      while (lines.charCodeAt(next) === space) next += 1
      if (lines.charCodeAt(next) === quote) bytes += endOfString(lines, next) - next - 1
      else if (lines.charCodeAt(next) === openBrace) bytes += textBytesIn(lines, next)
    }
    hit = lines.indexOf(key, next)
  }
  return bytes
}

/**
 * Prefixes of delta members with generated text; `reasoning` includes `reasoning_content` and similar names.
 */
const textMembers = [
  'input',
  'content',
  'text',
  'arguments',
  'tool_plan',
  'partial_json',
  'thinking',
  'reasoning',
  'refusal',
]

/** Bytes of generated text in the object that opens at `start`. */
function textBytesIn(lines: string, start: number): number {
  let bytes = 0
  let depth = 0
  let keyStart = start
  for (let index = start; index < lines.length; index += 1) {
    switch (lines.charCodeAt(index)) {
      case quote: {
        const end = endOfString(lines, index)
        if (isKey(lines, end)) keyStart = index + 1
        else if (isTextMember(lines, keyStart)) bytes += end - index - 1
        index = end
        break
      }
      case openBrace:
        depth += 1
        break
      case closeBrace:
        depth -= 1
        if (depth === 0) return bytes
        break
      case lineFeedCode:
        return bytes
    }
  }
  return bytes
}

function isKey(lines: string, stringEnd: number): boolean {
  let next = stringEnd + 1
  while (lines.charCodeAt(next) === space) next += 1
  return lines.charCodeAt(next) === colon
}

function isTextMember(lines: string, keyStart: number): boolean {
  for (const member of textMembers) if (lines.startsWith(member, keyStart)) return true
  return false
}

const lineFeedCode = 0x0a
const space = 0x20
const quote = 0x22
const colon = 0x3a
const openBrace = 0x7b
const closeBrace = 0x7d

/** True if the value of the key that ends before `index` starts with `character`. */
function valueStartsWith(lines: string, index: number, character: string): boolean {
  let start = index
  while (lines[start] === ' ' || lines[start] === ':') start += 1
  return lines[start] === character
}

/** The object in a `data:` line; undefined for other lines. */
export function parseDataLine(line: string): JsonObject | undefined {
  return line.startsWith('data:') ? parseJsonObject(line.slice(5)) : undefined
}

function isUsageChunk({ choices }: JsonObject): boolean {
  return Array.isArray(choices) && choices.length === 0
}
