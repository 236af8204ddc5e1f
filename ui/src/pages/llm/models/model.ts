/** A record of `llm.models`, as far as the console reads it. */
export type ModelValue = {
  readonly name: string
  readonly id?: string
  readonly provider: string | { readonly reference: string }
  readonly params?: { readonly model?: string; readonly baseUrl?: string }
  readonly visibility?: 'public' | 'internal'
}

/** A record of `llm.providers`. */
export type ProviderValue = {
  readonly name: string
  readonly provider: string
  readonly params?: { readonly baseUrl?: string; readonly model?: string }
}

/** Whether a name of `llm.models` is a pattern: `*`, `prefix*` or `*suffix`. */
export function isPattern(name: string): boolean {
  return name.startsWith('*') || name.endsWith('*')
}

/** Whether a requested name matches a name or pattern. */
export function matchesName(pattern: string, name: string): boolean {
  if (pattern === '*') return true
  if (pattern.endsWith('*')) return name.startsWith(pattern.slice(0, -1))
  if (pattern.startsWith('*')) return name.endsWith(pattern.slice(1))
  return pattern === name
}

/** Kind of the provider of a model; undefined if it refers to an unknown entry. */
export function providerKindOf(
  { provider }: Pick<ModelValue, 'provider'>,
  shared: ReadonlyMap<string, ProviderValue>,
): string | undefined {
  const name = typeof provider === 'string' ? provider : shared.get(provider.reference)?.provider
  return name === 'openAI' ? 'openai' : name
}

/** Names by which the catalog may have the price of a model, in the order of the gateway. */
export function priceNamesOf(value: ModelValue, kind: string | undefined): readonly string[] {
  if (kind === undefined) return []
  return [value.params?.model, value.name].flatMap((name) =>
    name === undefined || isPattern(name) ? [] : [`${kind}/${name}`],
  )
}
