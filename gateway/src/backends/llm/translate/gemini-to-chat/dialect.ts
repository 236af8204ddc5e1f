/**
 * Differences between chat completions as the API of the upstream, and as the step before the messages API or
 * the Converse API.
 */
export type ChatDialect = {
  /** Name of the upstream's API in refusals. */
  readonly upstream: string
  /** Media types of inline data beside images, PDF and text. */
  readonly media: 'audio and video' | 'none'
  /** Thinking has a budget of tokens, and its signed blocks are returned with tool calls. */
  readonly thinking: 'effort' | 'budget'
  /** JSON without a schema. */
  readonly plainJson: 'yes' | 'no'
}

export const chatDialect: ChatDialect = {
  upstream: 'chat completions',
  media: 'audio and video',
  thinking: 'effort',
  plainJson: 'yes',
}

export const messagesDialect: ChatDialect = {
  upstream: 'the messages API',
  media: 'none',
  thinking: 'budget',
  plainJson: 'no',
}

export const converseDialect: ChatDialect = { ...messagesDialect, upstream: 'the Converse API' }
