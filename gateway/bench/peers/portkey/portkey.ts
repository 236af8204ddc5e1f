import type { PeerDefinition } from '../definition.ts'

/**
 * https://github.com/Portkey-AI/gateway. It has no configuration file: headers of each request name provider
 * and address. The open source gateway has one process, no virtual keys, rules, limits, access log and
 * metrics, and serves neither MCP nor plain routes. Its web console is off.
 */
export const portkey: PeerDefinition = {
  name: 'portkey',
  // Streams fail with later versions of @hono/node-server.
  install: 'install @portkey-ai/gateway with npm, and @hono/node-server 1.3.3 through "overrides"',
  args: ['--headless', '--port={{port}}'],
  ready: { port: 'port', path: '/' },
  stages: {
    llm: {
      files: {},
      adapt: (request, { upstreamPort }) => ({
        ...request,
        headers: {
          ...request.headers,
          'x-portkey-provider': 'openai',
          'x-portkey-custom-host': `http://127.0.0.1:${upstreamPort}/v1`,
        },
      }),
      without: ['virtual keys', 'rules', 'limits', 'access log', 'metrics'],
    },
  },
}
