import type { ChatRequest } from '../../chat/model/chat-request.ts'
import { type RequestLanguage, requestCode } from '../snippets/request-code.ts'
import { type Guide, type GuideContext, type GuideStep, json } from './guide.ts'

/** Libraries that call models. */
export const codeGuides: readonly Guide[] = [
  {
    id: 'curl',
    label: 'curl',
    group: 'Code',
    serves: 'llm',
    about: 'The HTTP API without a library.',
    steps: (context) => [
      { title: 'Send a message', place: 'Shell', code: codeOf('curl', context) },
      {
        title: 'List the models of the key',
        place: 'Shell',
        code: `curl '${context.address}/v1/models' -H ${shellHeader(context)}`,
      },
    ],
  },
  {
    id: 'openai-sdk',
    label: 'OpenAI SDK',
    group: 'Code',
    serves: 'llm',
    about: 'The official libraries work unchanged, with another base address.',
    steps: (context) => [
      { title: 'Python', place: 'pip install openai', code: codeOf('openai-python', context) },
      { title: 'TypeScript', place: 'npm install openai', code: codeOf('openai-typescript', context) },
    ],
  },
  {
    id: 'anthropic-sdk',
    label: 'Anthropic SDK',
    group: 'Code',
    serves: 'llm',
    about: 'The messages API, for models of every provider: the gateway translates.',
    steps: (context) => [
      { title: 'Python', place: 'pip install anthropic', code: codeOf('anthropic-python', context) },
      {
        title: 'TypeScript',
        place: 'npm install @anthropic-ai/sdk',
        code: codeOf('anthropic-typescript', context),
      },
    ],
  },
  {
    id: 'langchain',
    label: 'LangChain',
    group: 'Code',
    serves: 'llm',
    about: 'ChatOpenAI with another base address.',
    steps: langchainSteps,
  },
  {
    id: 'ai-sdk',
    label: 'Vercel AI SDK',
    group: 'Code',
    serves: 'llm',
    about: 'The OpenAI-compatible provider.',
    steps: (context) => [
      {
        title: 'TypeScript',
        place: 'npm install ai @ai-sdk/openai-compatible',
        code: `import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { streamText } from 'ai'

const tollgate = createOpenAICompatible({
  name: 'tollgate',
  baseURL: ${json(`${context.address}/v1`)},
  apiKey: ${scriptKey(context)},
})

const { textStream } = streamText({ model: tollgate(${json(context.model)}), prompt: 'Hello' })
for await (const text of textStream) process.stdout.write(text)`,
      },
    ],
  },
]

function langchainSteps(context: GuideContext): readonly GuideStep[] {
  return [
    {
      title: 'Python',
      place: 'pip install langchain-openai',
      code: `${context.key === undefined ? 'import os\n\n' : ''}from langchain_openai import ChatOpenAI

model = ChatOpenAI(
    model=${json(context.model)},
    base_url=${json(`${context.address}/v1`)},
    api_key=${context.key === undefined ? 'os.environ["TOLLGATE_API_KEY"]' : json(context.key)},
)
print(model.invoke("Hello").content)`,
    },
    {
      title: 'TypeScript',
      place: 'npm install @langchain/openai @langchain/core',
      code: `import { ChatOpenAI } from '@langchain/openai'

const model = new ChatOpenAI({
  model: ${json(context.model)},
  apiKey: ${scriptKey(context)},
  configuration: { baseURL: ${json(`${context.address}/v1`)} },
})
const { content } = await model.invoke('Hello')
console.log(content)`,
    },
  ]
}

function codeOf(language: RequestLanguage, { address, model, key }: GuideContext): string {
  const request: ChatRequest = {
    model,
    messages: [{ role: 'user', content: 'Hello' }],
    ...(language === 'curl' ? {} : { stream: true }),
  }
  return requestCode(language, request, { baseUrl: `${address}/v1`, key })
}

function shellHeader({ key }: GuideContext): string {
  return key === undefined ? '"authorization: Bearer $TOLLGATE_API_KEY"' : `'authorization: Bearer ${key}'`
}

function scriptKey({ key }: GuideContext): string {
  return key === undefined ? 'process.env.TOLLGATE_API_KEY' : json(key)
}
