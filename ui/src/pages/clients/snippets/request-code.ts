import type { ChatRequest } from '../../chat/model/chat-request.ts'
import { anthropicRequest } from './anthropic-request.ts'
import { jsonLiteral, pythonLiteral, scriptLiteral, shellWord } from './literals.ts'

/** Address and credential in a snippet. */
export type Endpoint = {
  /** Address of the gateway with the path before the API's own: `http://127.0.0.1:4000/v1`. */
  readonly baseUrl: string
  /** Key to write into the snippet; without it the environment variable `TOLLGATE_API_KEY`. */
  readonly key?: string | undefined
}

export const requestLanguages = [
  { id: 'curl', label: 'curl' },
  { id: 'openai-python', label: 'Python (OpenAI)' },
  { id: 'openai-typescript', label: 'TypeScript (OpenAI)' },
  { id: 'anthropic-python', label: 'Python (Anthropic)' },
  { id: 'anthropic-typescript', label: 'TypeScript (Anthropic)' },
] as const

export type RequestLanguage = (typeof requestLanguages)[number]['id']

/** Environment variable with the virtual key in all snippets. */
const keyVariable = 'TOLLGATE_API_KEY'

/** Code that sends a chat completion to the gateway. */
export function requestCode(language: RequestLanguage, request: ChatRequest, endpoint: Endpoint): string {
  switch (language) {
    case 'curl':
      return curl(request, endpoint)
    case 'openai-python':
      return openaiPython(request, endpoint)
    case 'openai-typescript':
      return openaiScript(request, endpoint)
    case 'anthropic-python':
      return anthropicPython(request, endpoint)
    case 'anthropic-typescript':
      return anthropicScript(request, endpoint)
  }
}

/** Base address for Anthropic clients, which add `/v1` themselves. */
function anthropicBaseUrl({ baseUrl }: Endpoint): string {
  return baseUrl.replace(/\/v1\/?$/, '')
}

function curl(request: ChatRequest, { baseUrl, key }: Endpoint): string {
  const credential =
    key === undefined ? `"authorization: Bearer $${keyVariable}"` : shellWord(`authorization: Bearer ${key}`)
  return [
    `curl${request.stream ? ' -N' : ''} ${shellWord(`${baseUrl}/chat/completions`)} \\`,
    `  -H ${credential} \\`,
    `  -H 'content-type: application/json' \\`,
    `  -d ${shellWord(jsonLiteral(request))}`,
  ].join('\n')
}

function openaiPython(request: ChatRequest, { baseUrl, key }: Endpoint): string {
  return [
    ...(key === undefined ? ['import os', ''] : []),
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url=${pythonLiteral(baseUrl)}, api_key=${pythonKey(key)})`,
    '',
    `${request.stream ? 'stream' : 'completion'} = client.chat.completions.create(`,
    pythonArguments(request),
    ')',
    ...(request.stream
      ? [
          'for chunk in stream:',
          '    if chunk.choices and chunk.choices[0].delta.content:',
          '        print(chunk.choices[0].delta.content, end="", flush=True)',
        ]
      : ['print(completion.choices[0].message.content)']),
  ].join('\n')
}

function openaiScript(request: ChatRequest, { baseUrl, key }: Endpoint): string {
  return [
    "import OpenAI from 'openai'",
    '',
    `const client = new OpenAI({ baseURL: ${scriptLiteral(baseUrl)}, apiKey: ${scriptKey(key)} })`,
    '',
    `const ${request.stream ? 'stream' : 'completion'} = await client.chat.completions.create(${scriptLiteral(request)})`,
    ...(request.stream
      ? [
          'for await (const chunk of stream) {',
          "  process.stdout.write(chunk.choices[0]?.delta?.content ?? '')",
          '}',
        ]
      : ['console.log(completion.choices[0]?.message.content)']),
  ].join('\n')
}

function anthropicPython(request: ChatRequest, endpoint: Endpoint): string {
  const { key } = endpoint
  return [
    ...(key === undefined ? ['import os', ''] : []),
    'from anthropic import Anthropic',
    '',
    `client = Anthropic(base_url=${pythonLiteral(anthropicBaseUrl(endpoint))}, api_key=${pythonKey(key)})`,
    '',
    request.stream ? 'with client.messages.stream(' : 'message = client.messages.create(',
    pythonArguments(anthropicRequest(request)),
    ...(request.stream
      ? [') as stream:', '    for text in stream.text_stream:', '        print(text, end="", flush=True)']
      : [')', 'print(message.content[0].text)']),
  ].join('\n')
}

function anthropicScript(request: ChatRequest, endpoint: Endpoint): string {
  const body = scriptLiteral(anthropicRequest(request))
  const baseUrl = scriptLiteral(anthropicBaseUrl(endpoint))
  return [
    "import Anthropic from '@anthropic-ai/sdk'",
    '',
    `const client = new Anthropic({ baseURL: ${baseUrl}, apiKey: ${scriptKey(endpoint.key)} })`,
    '',
    ...(request.stream
      ? [
          `const stream = client.messages.stream(${body})`,
          "stream.on('text', (text) => process.stdout.write(text))",
          'await stream.finalMessage()',
        ]
      : [
          `const message = await client.messages.create(${body})`,
          'for (const block of message.content) {',
          "  if (block.type === 'text') console.log(block.text)",
          '}',
        ]),
  ].join('\n')
}

function pythonArguments(request: Readonly<Record<string, unknown>>): string {
  return Object.entries(request)
    .map(([name, value]) => `    ${name}=${pythonLiteral(value, 4)},`)
    .join('\n')
}

function pythonKey(key: string | undefined): string {
  return key === undefined ? `os.environ["${keyVariable}"]` : pythonLiteral(key)
}

function scriptKey(key: string | undefined): string {
  return key === undefined ? `process.env.${keyVariable}` : scriptLiteral(key)
}
