import { exportKey, type Guide, type GuideContext, json, keyText } from './guide.ts'

/** MCP clients. Without a key they log in at the identity provider of the endpoint, where one is configured. */
export const mcpGuides: readonly Guide[] = [
  {
    id: 'mcp-claude-code',
    label: 'Claude Code (MCP)',
    group: 'MCP clients',
    serves: 'mcp',
    about: 'Tools of the gateway in Claude Code.',
    steps: (context) => [
      {
        title: 'Add the server',
        place: 'Shell',
        code: `claude mcp add --transport http tollgate '${context.address}/mcp' \\
  --header 'Authorization: Bearer ${keyText(context)}'`,
        note: withoutKey,
      },
    ],
  },
  {
    id: 'claude-desktop',
    label: 'Claude Desktop',
    group: 'MCP clients',
    serves: 'mcp',
    about: 'Through mcp-remote, which connects a program on your machine to the address.',
    steps: (context) => [
      {
        title: 'Add the server',
        place: 'claude_desktop_config.json (Settings, Developer, Edit Config)',
        code: json({
          mcpServers: {
            tollgate: {
              command: 'npx',
              args: [
                '-y',
                'mcp-remote',
                `${context.address}/mcp`,
                '--header',
                // A space in an argument is lost on some systems: the value comes from the environment.
                'Authorization:$' + '{AUTH_HEADER}',
                ...(isPlainRemote(context.address) ? ['--allow-http'] : []),
              ],
              env: { AUTH_HEADER: `Bearer ${keyText(context)}` },
            },
          },
        }),
        note: withoutKey,
      },
    ],
  },
  {
    id: 'mcp-cursor',
    label: 'Cursor (MCP)',
    group: 'MCP clients',
    serves: 'mcp',
    about: 'Tools of the gateway in the agent of Cursor.',
    steps: (context) => [
      {
        title: 'Add the server',
        place: '~/.cursor/mcp.json',
        code: json({
          mcpServers: {
            tollgate: {
              url: `${context.address}/mcp`,
              headers: {
                Authorization:
                  context.key === undefined ? 'Bearer $' + '{env:TOLLGATE_API_KEY}' : `Bearer ${context.key}`,
              },
            },
          },
        }),
        note: withoutKey,
      },
    ],
  },
  {
    id: 'mcp-vscode',
    label: 'VS Code (MCP)',
    group: 'MCP clients',
    serves: 'mcp',
    about: 'Tools of the gateway in agent mode. VS Code asks for the key once and stores it.',
    steps: (context) => [
      {
        title: 'Add the server',
        place: '.vscode/mcp.json',
        code: json({
          inputs: [
            {
              type: 'promptString',
              id: 'tollgate-key',
              description: 'Virtual key of Tollgate',
              password: true,
            },
          ],
          servers: {
            tollgate: {
              type: 'http',
              url: `${context.address}/mcp`,
              headers: { Authorization: 'Bearer $' + '{input:tollgate-key}' },
            },
          },
        }),
        note: withoutKey,
      },
    ],
  },
  {
    id: 'mcp-codex',
    label: 'Codex (MCP)',
    group: 'MCP clients',
    serves: 'mcp',
    about: 'Tools of the gateway in Codex.',
    steps: (context) => [
      {
        title: 'Add the server',
        place: '~/.codex/config.toml',
        code: `[mcp_servers.tollgate]
url = ${json(`${context.address}/mcp`)}
bearer_token_env_var = "TOLLGATE_API_KEY"`,
      },
      exportKey(context),
    ],
  },
  {
    id: 'inspector',
    label: 'MCP Inspector',
    group: 'MCP clients',
    serves: 'mcp',
    about: 'The official tool for tests of MCP servers.',
    steps: (context) => [
      {
        title: 'List the tools',
        place: 'Shell',
        code: `npx @modelcontextprotocol/inspector --cli '${context.address}/mcp' \\
  --transport http --method tools/list \\
  --header ${inspectorHeader(context)}`,
      },
    ],
  },
]

const withoutKey =
  'Without a key, leave out the header: where the endpoint has an identity provider, the client opens its login.'

function inspectorHeader({ key }: GuideContext): string {
  return key === undefined ? '"Authorization: Bearer $TOLLGATE_API_KEY"' : `'Authorization: Bearer ${key}'`
}

function isPlainRemote(address: string): boolean {
  return (
    address.startsWith('http://') && !/^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?=[:/]|$)/.test(address)
  )
}
