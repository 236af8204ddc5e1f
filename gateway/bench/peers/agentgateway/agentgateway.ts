import { benchKeys, keyRecord } from '../../subjects/tollgate.ts'
import type { PeerDefinition } from '../definition.ts'

/**
 * https://agentgateway.dev. It has every feature of the three groups: virtual keys by hash, rules, limits,
 * access log, metrics, tokens and rules of MCP, routes. It listens on all addresses of the machine.
 */
export const agentgateway: PeerDefinition = {
  name: 'agentgateway',
  install: 'install a release from https://agentgateway.dev',
  args: ['-f', '{{config}}'],
  ready: { port: 'readinessPort', path: '/healthz/ready' },
  stages: {
    llm: {
      files: { 'config.yaml': 'llm.yaml' },
      values: () => ({ keys: benchKeys().map(keyRecord) }),
      without: [],
    },
    mcp: { files: { 'config.yaml': 'mcp.yaml' }, without: [] },
    http: { files: { 'config.yaml': 'http.yaml' }, without: [] },
  },
}
