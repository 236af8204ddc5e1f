import { bearer, fixedKind, type Provider, type ProviderKind, type ProviderPaths } from './provider.ts'

const chat: ProviderPaths = { chat: '/chat/completions' }
const responses: ProviderPaths = { responses: '/responses' }
const both: ProviderPaths = { ...chat, ...responses }
const messages: ProviderPaths = { ...chat, messages: '/v1/messages' }
const embeddings: ProviderPaths = { embeddings: '/embeddings' }

/** APIs by the start of the model's name, as its `supported_endpoints` list them. The first match counts. */
const apis: readonly [start: string, paths: ProviderPaths][] = [
  ['claude-', messages],
  ['grok-', responses],
  ['mai-', responses],
  ['gpt-3', chat],
  ['gpt-4', chat],
  ['gpt-5.4', both],
  ['gpt-5-mini', both],
  ['gpt-', responses],
  ['text-embedding-', embeddings],
]

const provider: Provider = {
  name: 'copilot',
  address: 'https://api.githubcopilot.com',
  paths: { ...both, ...messages, ...embeddings },
  pathsFor({ model }) {
    const name = model.toLowerCase()
    return apis.find(([start]) => name.startsWith(start))?.[1] ?? chat
  },
  // Editors send their own.
  defaultHeaders: {
    'anthropic-version': '2023-06-01',
    'editor-version': 'tollgate/1',
    'openai-intent': 'conversation-agent',
    'x-github-api-version': '2025-10-01',
    'x-initiator': 'agent',
    'x-interaction-type': 'conversation-agent',
  },
  authorize: bearer,
}

/** GitHub Copilot. https://docs.github.com/copilot */
export const copilotKind: ProviderKind = { ...fixedKind(provider), ambientAuth: { copilot: {} } }
