import { exportKey, type Guide, json, keyText } from './guide.ts'

/** Applications and agents that call models. */
export const applicationGuides: readonly Guide[] = [
  {
    id: 'claude-code',
    label: 'Claude Code',
    group: 'Coding agents',
    serves: 'llm',
    about: 'All requests of Claude Code go through the gateway, with a virtual key instead of a login.',
    steps: (context) => [
      {
        title: 'Start it with the address and the key',
        place: 'Shell',
        code: `export ANTHROPIC_BASE_URL='${context.address}'
export ANTHROPIC_AUTH_TOKEN='${keyText(context)}'
claude --model '${context.model}'`,
        note: 'The status tab of /status displays the address. The gateway must have a model for each name that Claude Code requests, for example the pattern claude-*.',
      },
      {
        title: 'Or store both',
        place: '~/.claude/settings.json',
        code: json({
          env: { ANTHROPIC_BASE_URL: context.address, ANTHROPIC_AUTH_TOKEN: keyText(context) },
          model: context.model,
        }),
      },
    ],
  },
  {
    id: 'codex',
    label: 'Codex',
    group: 'Coding agents',
    serves: 'llm',
    about: 'Codex uses the responses API, which the gateway passes to OpenAI-compatible providers.',
    steps: (context) => [
      {
        title: 'Add the provider',
        place: '~/.codex/config.toml',
        code: `model = ${json(context.model)}
model_provider = "tollgate"

[model_providers.tollgate]
name = "Tollgate"
base_url = ${json(`${context.address}/v1`)}
env_key = "TOLLGATE_API_KEY"
wire_api = "responses"`,
      },
      exportKey(context),
      { title: 'Start it', place: 'Shell', code: 'codex' },
    ],
  },
  {
    id: 'cursor',
    label: 'Cursor',
    group: 'Coding agents',
    serves: 'llm',
    about: 'Chat models of Cursor, with another base address for OpenAI.',
    steps: (context) => [
      {
        title: 'Override the address',
        place: 'Cursor settings, Models, API keys: Override OpenAI Base URL',
        code: `${context.address}/v1`,
        note: 'The servers of Cursor send the requests: the address must be reachable from the internet, with HTTPS.',
      },
      { title: 'Enter the key', place: 'OpenAI API key', code: keyText(context) },
      { title: 'Add the model', place: 'Add custom model', code: context.model },
    ],
  },
  {
    id: 'vscode',
    label: 'VS Code',
    group: 'Coding agents',
    serves: 'llm',
    about:
      'A custom endpoint of the chat. In the command palette: Chat: Manage Language Models, Add Models, Custom Endpoint.',
    steps: (context) => [
      {
        title: 'Add the model',
        place: 'chatLanguageModels.json',
        code: json([
          {
            name: 'Tollgate',
            vendor: 'customendpoint',
            apiKey: keyText(context),
            models: [
              {
                id: context.model,
                name: `${context.model} (Tollgate)`,
                url: `${context.address}/v1/chat/completions`,
                apiType: 'chat-completions',
                toolCalling: true,
                vision: false,
                maxInputTokens: 128_000,
                maxOutputTokens: 16_000,
              },
            ],
          },
        ]),
        note: 'VS Code asks for the key and stores it. Set vision and the limits of the model.',
      },
    ],
  },
  {
    id: 'open-webui',
    label: 'Open WebUI',
    group: 'Applications',
    serves: 'llm',
    about: 'A chat for teams. Its users see the models that the key allows.',
    steps: (context) => [
      {
        title: 'Start it',
        place: 'Shell',
        code: `docker run -d --name open-webui -p 8080:8080 \\
  --add-host=host.docker.internal:host-gateway \\
  -e OPENAI_API_BASE_URL='${insideContainer(context.address)}/v1' \\
  -e OPENAI_API_KEY='${keyText(context)}' \\
  -v open-webui:/app/backend/data \\
  ghcr.io/open-webui/open-webui:main`,
        note: 'A container does not reach 127.0.0.1 of its host: the gateway must listen on another address too (config.bindAddress).',
      },
    ],
  },
]

/** Address of the host as a container sees it. */
function insideContainer(address: string): string {
  return address.replace(/\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?=[:/]|$)/, '//host.docker.internal')
}
