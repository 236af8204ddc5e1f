/** A request as it arrived at a vendor, independent of the vendor's API. */
export type Received = {
  /** All texts of the conversation, joined. */
  text: string
  /** Base64 of images and documents. */
  images: readonly string[]
  documents: readonly string[]
  /** Names of the declared tools. */
  tools: readonly string[]
  /** Results of tools. */
  results: readonly string[]
  stops: readonly string[]
  hasSchema: boolean
  reasons: boolean
  audio: readonly string[]
  /** Cache markers. */
  marks: number
  logprobs: boolean
  /** One tool is called at a time. */
  single: boolean
  /** Whether thinking of an earlier response has its signature; undefined if the API has none. */
  signed: boolean | undefined
}

export type Call = { name: string; input: Record<string, unknown> }

/** `input` includes `cached`, and `output` includes `reasoning`. */
export type Tokens = { input: number; cached: number; output: number; reasoning: number }

/** The response of the model, independent of the vendor's API. */
export type Generated = {
  reasoning: string
  text: string
  calls: readonly Call[]
  /** `blocked`: the prompt is filtered; `filtered`: the response. */
  finish: 'stop' | 'stop_sequence' | 'tools' | 'filtered' | 'blocked'
  tokens: Tokens
  /** The page that the text cites. */
  citation?: { url: string; title: string }
  /** The reason of a refusal. */
  refusal?: string
  logprobs?: boolean
}

/** Signature of thinking. */
export const signature = 'c2lnbmVk'

/** The same response to the same request for all vendors. */
export function generate(received: Received): Generated {
  const { text, tools, results, stops, hasSchema, reasons, logprobs } = received
  const reasoning = reasons ? 'Let me see.' : ''
  // Counts differ between requests, so that sums show a request that is missing or counted twice.
  const output = 9 + (text.length % 5) + (reasons ? 4 : 0)
  const tokens = { input: 20 + (text.length % 7), cached: 6, output, reasoning: reasons ? 4 : 0 }
  const answer = { reasoning, text: '', calls: [], tokens, logprobs }
  if (text.includes('Refuse')) return { ...answer, refusal: 'I cannot help.', finish: 'filtered' }
  if (text.includes('Cite')) return { ...answer, text: 'Zürich is quiet 🙂.', citation: page, finish: 'stop' }
  const [name] = tools
  if (text.includes('fail:filtered_prompt')) return { ...answer, finish: 'blocked' }
  if (text.includes('fail:filtered_output')) return { ...answer, text: 'First, ', finish: 'filtered' }
  if (results.length > 0)
    return { ...answer, text: `The results are ${results.join(' and ')}.`, finish: 'stop' }
  if (name !== undefined) {
    const cities = text.includes('both') ? ['Rome', 'Oslo'] : ['Rome']
    return { ...answer, calls: cities.map((city) => ({ name, input: { city } })), finish: 'tools' }
  }
  if (hasSchema) return { ...answer, text: '{"city":"Rome"}', finish: 'stop' }
  if (stops.length > 0) return { ...answer, text: 'One, two, ', finish: 'stop_sequence' }
  return { ...answer, text: 'Hello there, how may I help? 🙂', finish: 'stop' }
}

const page = { url: 'https://example.com/zurich', title: 'Zürich' }

/** Pieces of a text that do not respect words. */
export function pieces(text: string): string[] {
  return text.match(/.{1,7}/gsu) ?? []
}

/** Values of a name at any depth of JSON. */
export function valuesOf(json: unknown, name: string): unknown[] {
  if (typeof json !== 'object' || json === null) return []
  return Object.entries(json).flatMap(([key, value]) => [
    ...(key === name && !Array.isArray(json) ? [value] : []),
    ...valuesOf(value, name),
  ])
}

export function textsOf(json: unknown, name: string): string[] {
  return valuesOf(json, name).filter((value) => typeof value === 'string')
}

/** Base64 in data URLs of a media type. */
export function dataUrls(json: unknown, type: string): string[] {
  const all = JSON.stringify(json).matchAll(/"data:([a-z/]+);base64,([A-Za-z0-9+/=]+)"/g)
  return [...all].flatMap(([, found = '', data = '']) => (found.startsWith(type) ? [data] : []))
}

/** Log probabilities of a text in chat completions and responses; null if they are not requested. */
export function logprobsOf({ logprobs }: Generated, text: unknown): { content: object[] } | null {
  if (logprobs !== true || typeof text !== 'string') return null
  return { content: pieces(text).map((token) => ({ token, logprob: -0.5, bytes: [], top_logprobs: [] })) }
}
