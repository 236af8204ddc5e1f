import { decodeSegment } from './decode-segment.ts'

/** A call of Anthropic's API in Vertex AI, whose model and form are in its path. */
export type VertexCall = {
  readonly endpoint: 'messages' | 'count_tokens'
  /** Undefined for a count, whose model is in the body. */
  readonly model: string | undefined
  readonly streaming: boolean
}

const form = /\/publishers\/anthropic\/models\/([^/]+):(rawPredict|streamRawPredict)$/

/**
 * The call of a path with any prefix, such as
 * `/v1/projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict`;
 * undefined for other paths. https://docs.anthropic.com/en/api/claude-on-vertex-ai
 */
export function vertexCallIn(path: string): VertexCall | undefined {
  if (!path.endsWith('awPredict')) return undefined
  const [, segment = '', method] = form.exec(path) ?? []
  const model = decodeSegment(segment)
  if (method === undefined || model === undefined) return undefined
  if (model === 'count-tokens') return { endpoint: 'count_tokens', model: undefined, streaming: false }
  return { endpoint: 'messages', model, streaming: method === 'streamRawPredict' }
}

/** True for a canonical path, in lower case, of a method that `vertexCallIn` reads in its own spelling. */
export function isVertexMethod(path: string): boolean {
  return /\/publishers\/anthropic\/models\/[^/]+:(?:stream)?rawpredict$/.test(path)
}
