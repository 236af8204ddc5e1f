/** Facts that a request retains until its end, because expressions of telemetry read them. */
export type RetainedFacts = {
  /** Headers of the response. */
  readonly response: boolean
  /** Arguments, results and errors of MCP calls. */
  readonly mcpContent: boolean
  /** Texts of prompts and completions. */
  readonly llmTexts: boolean
}
