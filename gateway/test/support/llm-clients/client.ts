/** A request of a client, independent of its API. */
export type Ask = {
  text: string
  streaming?: boolean
  /** Base64 of a PNG and of a PDF. */
  image?: string
  document?: string
  tool?: string
  schema?: object
  stop?: string
  reasons?: boolean
  /** Base64 of a WAV. */
  audio?: string
  /** Marks the system prompt and the text for the cache. */
  marked?: boolean
  logprobs?: boolean
  /** Requests thinking for the next request. */
  signed?: boolean
  /** Allows one tool at a time. */
  single?: boolean
  /** Earlier response, whose calls have these results. */
  previous?: Answer
  results?: readonly string[]
}

export type ToolCall = { id: string; name: string; input: unknown }

/** A response, independent of the client's API. */
export type Answer = {
  text: string
  reasoning: string
  calls: ToolCall[]
  finish: unknown
  /** Addresses of cited pages. */
  citations: readonly unknown[]
  refusal: string
  /** Text of the tokens with log probabilities. */
  logprobs: string
  tokens: { input: unknown; output: unknown }
  /** The assistant's turn as the next request repeats it. */
  turn: unknown
}

export type Json = Record<string, unknown>

export type ClientError = { type: unknown; code: unknown; message: unknown }

/** One API of clients. */
export type ApiClient = {
  /** Value of `llm.api`. */
  readonly api: string
  path(model: string, ask: Ask): string
  body(model: string, ask: Ask): Json
  read(body: Json): Answer
  readStream(events: readonly Json[]): Answer
  /** The error of a body or of an event; undefined if it is none of the API. */
  error(body: Json): ClientError | undefined
}

export const system = 'You are terse.'

/** The data of server-sent events. */
export function eventsOf(text: string): Json[] {
  return text
    .split(/\r?\n\r?\n/)
    .flatMap((block) => /^data: (.*)$/m.exec(block)?.[1] ?? [])
    .filter((data) => data !== '[DONE]')
    .map((data) => JSON.parse(data))
}

export function joined(parts: readonly unknown[]): string {
  return parts.filter((part) => typeof part === 'string').join('')
}
