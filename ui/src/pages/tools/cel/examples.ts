/** Expressions that answer a frequent question, by scope. */
export const examples: Readonly<
  Record<string, readonly { readonly label: string; readonly expression: string }[]>
> = {
  http: [
    { label: 'Members of a group', expression: '"admins" in jwt.groups' },
    { label: 'Own network', expression: 'source.network == "203.0.113.7/32"' },
    {
      label: 'A header',
      expression: 'has(request.headers["x-team"]) && request.headers["x-team"] == "search"',
    },
  ],
  llm: [
    { label: 'Small requests', expression: 'default(llmRequest.max_tokens, 0) <= 1000' },
    { label: 'A model for a group', expression: 'llm.requestModel != "gpt-5" || apiKey.group == "search"' },
    { label: 'No images', expression: '!llmRequest.messages.exists(m, type(m.content) != string)' },
  ],
  llmRouting: [
    { label: 'Streams', expression: 'llm.streaming' },
    {
      label: 'Long prompts',
      expression: 'llmRequest.messages.map(m, size(string(m.content))).exists(n, n > 4000)',
    },
  ],
  llmCost: [{ label: 'Output counts three times', expression: 'llm.inputTokens + 3 * llm.outputTokens' }],
  guardHeaders: [{ label: 'User', expression: 'jwt.sub' }],
  mcp: [{ label: 'Members of a group', expression: '"admins" in jwt.groups' }],
  mcpItem: [
    { label: 'Read-only tools', expression: 'has(mcp.tool) && mcp.tool.name.startsWith("read_")' },
    { label: 'One server', expression: 'mcp.tool.target == "everything"' },
  ],
  ui: [{ label: 'Administrators change', expression: '!ui.change || "admins" in jwt.groups' }],
  credential: [{ label: 'A header', expression: 'request.headers["x-api-key"]' }],
}

export const firstExpression = 'request.method == "POST"'
