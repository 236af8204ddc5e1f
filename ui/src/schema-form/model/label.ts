/** Words that are written in capitals. */
const acronyms = new Map(
  ['api', 'url', 'uri', 'id', 'tls', 'ca', 'jwt', 'jwks', 'cors', 'mcp', 'llm', 'http', 'sse', 'cel', 'ip']
    .concat(['ttl', 'usd', 'aws', 'ai', 'dns', 'tcp', 'ui', 'json', 'oidc', 'sni', 'ttft', 'csrf'])
    .map((word) => [word, word.toUpperCase()]),
)
const names = new Map([
  ['openai', 'OpenAI'],
  ['idpA', 'IdP A'],
  ['idpB', 'IdP B'],
  ['oauth2', 'OAuth 2'],
])

/** A field name as words: `baseUrl` becomes `Base URL`. Names that are no identifiers are unchanged. */
export function labelOf(name: string): string {
  const known = names.get(name)
  if (known !== undefined) return known
  if (!/^[a-z][A-Za-z0-9]*$/.test(name)) return name
  const words = name.replace(/([a-z0-9])([A-Z])/g, '$1 $2').replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
  return words
    .split(' ')
    .map((word, index) => {
      const lower = word.toLowerCase()
      return acronyms.get(lower) ?? (index === 0 ? lower.charAt(0).toUpperCase() + lower.slice(1) : lower)
    })
    .join(' ')
}
