import { benchKey } from '../../subjects/tollgate.ts'
import type { PeerDefinition } from '../definition.ts'

/**
 * https://docs.litellm.ai/docs/simple_proxy. Virtual keys, and rules on them, need a Postgres database: here
 * the gateway has its master key only. Plain routes (`pass_through_endpoints`) are left out.
 */
export const litellm: PeerDefinition = {
  name: 'litellm',
  install: "pip install 'litellm[proxy]'",
  args: ['--config', '{{config}}', '--host', '127.0.0.1', '--port', '{{port}}', '--num_workers', '1'],
  env: {
    // Prices come from the package, not from the network.
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
    LITELLM_MODE: 'PRODUCTION',
  },
  ready: { port: 'port', path: '/health/liveliness' },
  stages: {
    llm: {
      files: { 'config.yaml': 'llm.yaml' },
      without: ['10,000 virtual keys (it checks one key)', 'rules'],
    },
    mcp: {
      files: { 'config.yaml': 'mcp.yaml' },
      adapt: (request) => ({
        ...request,
        headers: { ...request.headers, authorization: `Bearer ${benchKey}` },
      }),
      without: ['signed tokens (it checks one key)', 'rules'],
    },
  },
}
