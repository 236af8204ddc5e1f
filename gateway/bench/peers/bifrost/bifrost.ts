import { benchKeys } from '../../subjects/tollgate.ts'
import type { PeerDefinition } from '../definition.ts'

/**
 * https://docs.getbifrost.ai. On: 10,000 virtual keys, three limits of the model for all keys, the log of
 * requests in SQLite without their content, metrics. Rules in CEL select targets and cannot refuse a request;
 * the log has no other form. Plain routes and signed tokens of MCP clients do not exist; MCP is left out.
 */
export const bifrost: PeerDefinition = {
  name: 'bifrost',
  install: 'npm install -g @maximhq/bifrost',
  args: [
    ...['-app-dir', '{{folder}}', '-host', '127.0.0.1', '-port', '{{port}}'],
    ...['-log-level', 'warn', '-log-style', 'json'],
  ],
  ready: { port: 'port', path: '/health' },
  stages: {
    llm: {
      files: { 'config.json': 'llm.json.template' },
      values: () => ({ keys: benchKeys().map(virtualKey) }),
      adapt: ({ headers: { authorization = '', ...headers }, body, ...request }) => ({
        ...request,
        headers: { ...headers, 'x-bf-vk': authorization.replace('Bearer ', '') },
        // Model names have the provider as a prefix.
        body: body.replace('"model":"', '"model":"openai/'),
      }),
      without: ['rules'],
    },
  },
}

function virtualKey(value: string, index: number): object {
  return {
    id: `key-${index}`,
    name: `key ${index}`,
    value,
    is_active: true,
    provider_configs: [{ provider: 'openai', allowed_models: ['*'], key_ids: ['*'], weight: 1 }],
  }
}
