/** Values of this gateway in the snippets. */
export type GuideContext = {
  /** Address of the gateway without path. */
  readonly address: string
  readonly model: string
  /** Key to write into snippets; without it they name the environment variable or a placeholder. */
  readonly key: string | undefined
}

export type GuideStep = {
  readonly title: string
  /** Place of the text: a file, or a field of a settings page. */
  readonly place?: string
  readonly code: string
  readonly note?: string
}

/** Setup of one client. */
export type Guide = {
  readonly id: string
  readonly label: string
  readonly group: 'Code' | 'Coding agents' | 'Applications' | 'MCP clients'
  readonly serves: 'llm' | 'mcp'
  readonly about: string
  steps(context: GuideContext): readonly GuideStep[]
}

/** Key in files that read no environment. */
export function keyText({ key }: GuideContext): string {
  return key ?? 'YOUR_TOLLGATE_KEY'
}

/** Shell line that sets the variable of the snippets. */
export function exportKey(context: GuideContext): GuideStep {
  return { title: 'Set the key', place: 'Shell', code: `export TOLLGATE_API_KEY='${keyText(context)}'` }
}

export function json(value: unknown): string {
  return JSON.stringify(value, null, 2)
}
