/** A provider of the guided path. */
export type ProviderChoice = {
  /** Value of `provider`. */
  readonly id: string
  readonly label: string
  readonly about: string
  readonly credential: 'required' | 'optional' | 'none'
  /** Whether the address must be entered, and the proposed one. */
  readonly address?: { readonly required: boolean; readonly example: string }
  /** Proposed models of clients; any other can be entered. */
  readonly models: readonly string[]
}

/** Providers in the order of the page. */
export const providerChoices: readonly ProviderChoice[] = [
  {
    id: 'openai',
    label: 'OpenAI',
    about: 'api.openai.com',
    credential: 'required',
    models: ['gpt-*', 'gpt-5', 'gpt-5-mini', 'gpt-4o-mini'],
  },
  {
    id: 'anthropic',
    label: 'Anthropic',
    about: 'api.anthropic.com',
    credential: 'required',
    models: ['claude-*', 'claude-sonnet-4-5', 'claude-haiku-4-5'],
  },
  {
    id: 'gemini',
    label: 'Gemini',
    about: 'OpenAI-compatible API of Google',
    credential: 'required',
    models: ['gemini-*', 'gemini-2.5-flash'],
  },
  { id: 'mistral', label: 'Mistral', about: 'api.mistral.ai', credential: 'required', models: ['mistral-*'] },
  { id: 'groq', label: 'Groq', about: 'api.groq.com', credential: 'required', models: ['llama-*'] },
  {
    id: 'openrouter',
    label: 'OpenRouter',
    about: 'openrouter.ai',
    credential: 'required',
    models: ['openai/*', 'anthropic/*'],
  },
  {
    id: 'ollama',
    label: 'Ollama',
    about: 'Models on your machine',
    credential: 'none',
    address: { required: false, example: 'http://localhost:11434/v1' },
    models: ['llama3.2', '*'],
  },
  {
    id: 'custom',
    label: 'OpenAI-compatible',
    about: 'vLLM, LM Studio, LiteLLM or your own',
    credential: 'optional',
    address: { required: true, example: 'https://models.example.com/v1' },
    models: ['*'],
  },
  {
    id: 'echo',
    label: 'Echo',
    about: 'Built in: no account, no network',
    credential: 'none',
    models: ['echo'],
  },
]
