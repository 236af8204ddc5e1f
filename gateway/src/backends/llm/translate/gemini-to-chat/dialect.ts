/**
 * Differences between chat completions as the API of the upstream, and as the step before other APIs.
 */
export type ChatDialect = {
  /** Name of the upstream's API in refusals. */
  readonly upstream: string
  /** Media types of inline data beside images, PDF and text. */
  readonly media: 'audio and video' | 'audio' | 'none'
  /**
   * Thinking has an effort or a budget of tokens. `budget` and `summary` return it signed with tool calls;
   * `summary` is an effort with a summary for clients that include thoughts.
   */
  readonly thinking: 'effort' | 'budget' | 'summary'
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

export const responsesDialect: ChatDialect = {
  upstream: 'the Responses API',
  media: 'none',
  thinking: 'summary',
  plainJson: 'yes',
}

export const converseDialect: ChatDialect = {
  ...messagesDialect,
  upstream: 'the Converse API',
  media: 'audio',
}
