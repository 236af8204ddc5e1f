import { decodeSegment } from './decode-segment.ts'

/** A call of Amazon Bedrock Runtime, whose model and form are in its path. */
export type BedrockCall = {
  readonly endpoint: 'converse' | 'invoke' | 'converse_count'
  /** Id or ARN of a model, or a name of the configuration. */
  readonly model: string
  readonly streaming: boolean
}

const prefix = '/model/'
const form = /^(.+)\/(converse|converse-stream|invoke|invoke-with-response-stream|count-tokens)$/

/**
 * The call of a path with any prefix, such as `/model/amazon.nova-lite-v1%3A0/converse`; undefined for other
 * paths. ARNs contain slashes, which not all clients encode.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_Operations_Amazon_Bedrock_Runtime.html
 */
export function bedrockCallIn(path: string): BedrockCall | undefined {
  const start = path.lastIndexOf(prefix)
  if (start === -1) return undefined
  const [, segment = '', operation] = form.exec(path.slice(start + prefix.length)) ?? []
  const model = decodeSegment(segment)
  if (operation === undefined || model === undefined) return undefined
  const streaming = operation.endsWith('-stream')
  if (operation === 'count-tokens') return { endpoint: 'converse_count', model, streaming }
  return { endpoint: operation.startsWith('converse') ? 'converse' : 'invoke', model, streaming }
}
