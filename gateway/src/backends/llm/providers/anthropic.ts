import type { Provider } from './provider.ts'

/** https://docs.anthropic.com/en/api */
export const anthropic: Provider = {
  name: 'anthropic',
  address: 'https://api.anthropic.com/v1',
  paths: {
    messages: '/messages',
    count_tokens: '/messages/count_tokens',
    message_batches: '/messages/batches',
    anthropic_files: '/files',
  },
  defaultHeaders: { 'anthropic-version': '2023-06-01' },
  authorize(request, credential) {
    // Tokens of an interactive login are bearer tokens; API keys have a separate header.
    if (credential.startsWith('sk-ant-oat')) request.headers['authorization'] = `Bearer ${credential}`
    else request.headers['x-api-key'] = credential
  },
}
