import type { Answer, Ask } from '../llm-clients/client.ts'
import { generate, type Received } from '../vendors/scripted-model.ts'

/** A feature of conversations: a request, and the parts of it that vendor and client must receive. */
export type Feature = {
  readonly name: string
  readonly ask: Ask
  /** APIs of clients without the feature. */
  readonly absentIn?: readonly string[]
  /** Its name if it is lost. */
  readonly part?: string
  /** Results of the calls that the first response contains, in a second request. */
  readonly results?: readonly string[]
  /** Parts that a vendor must receive. */
  sent?(received: Received): boolean
  /** Parts that the client must receive, beside text, calls and tokens. */
  returned?(answer: Answer): boolean
}

export const schema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}

const image = Buffer.from('an image').toString('base64')
const document = Buffer.from('%PDF-1.7 a document').toString('base64')
const audio = Buffer.from('RIFF a recording').toString('base64')
const tool = 'get_weather'
const isCited = ({ citations }: Answer) => citations.join() === 'https://example.com/zurich'
const isRefused = ({ refusal }: Answer) => refusal !== ''
const hasLogprobs = ({ text, logprobs }: Answer) => logprobs === text

export const features: readonly Feature[] = [
  { name: 'text', ask: { text: 'Hi' } },
  { name: 'streamed text', ask: { text: 'Hi there', streaming: true } },
  {
    name: 'tools',
    ask: { text: 'Weather?', tool, schema },
    results: ['hot'],
    sent: ({ tools }) => tools[0] === tool,
  },
  {
    name: 'parallel tools, streamed',
    ask: { text: 'Weather of both?', tool, schema, streaming: true },
    results: ['hot', 'cold'],
    sent: ({ tools }) => tools[0] === tool,
  },
  {
    name: 'structured output',
    ask: { text: 'A city', schema },
    sent: ({ hasSchema }) => hasSchema,
  },
  { name: 'images', ask: { text: 'See', image }, sent: ({ images }) => images[0] === image },
  {
    name: 'documents',
    ask: { text: 'Read', document },
    absentIn: ['cohere_chat'],
    sent: ({ documents }) => documents[0] === document,
  },
  {
    name: 'audio',
    ask: { text: 'Hear', audio },
    absentIn: ['messages', 'cohere_chat'],
    sent: ({ audio: [first] }) => first === audio,
  },
  {
    name: 'one tool at a time',
    ask: { text: 'Weather now?', tool, schema, single: true },
    absentIn: ['generate_content', 'converse', 'cohere_chat'],
    results: ['hot'],
    sent: ({ single, results }) => single || results.length > 0,
    part: 'limit of calls',
  },
  {
    name: 'cache markers',
    ask: { text: 'Remember', marked: true },
    absentIn: ['responses', 'generate_content', 'cohere_chat'],
    sent: ({ marks }) => marks === 2,
    part: 'cache markers',
  },
  { name: 'citations', ask: { text: 'Cite' }, returned: isCited, part: 'citations' },
  {
    name: 'streamed citations',
    ask: { text: 'Cite it', streaming: true },
    returned: isCited,
    part: 'citations',
  },
  { name: 'refusals', ask: { text: 'Refuse' }, returned: isRefused, part: 'reasons of refusals' },
  {
    name: 'streamed refusals',
    ask: { text: 'Refuse it', streaming: true },
    returned: isRefused,
    part: 'reasons of refusals',
  },
  {
    name: 'log probabilities',
    ask: { text: 'Guess', logprobs: true },
    absentIn: ['messages', 'converse', 'cohere_chat'],
    sent: ({ logprobs }) => logprobs,
    returned: hasLogprobs,
    part: 'log probabilities',
  },
  {
    name: 'streamed log probabilities',
    ask: { text: 'Guess it', logprobs: true, streaming: true },
    absentIn: ['messages', 'converse', 'cohere_chat'],
    sent: ({ logprobs }) => logprobs,
    returned: hasLogprobs,
    part: 'log probabilities',
  },
  {
    name: 'signed thinking',
    ask: { text: 'Think of the weather', tool, schema, reasons: true, signed: true },
    absentIn: ['cohere_chat'],
    results: ['hot'],
    sent: ({ signed, results }) => results.length === 0 || signed !== false,
    part: 'signatures',
  },
  {
    name: 'signed thinking, streamed',
    ask: { text: 'Think of the weather now', tool, schema, reasons: true, signed: true, streaming: true },
    absentIn: ['cohere_chat'],
    results: ['hot'],
    sent: ({ signed, results }) => results.length === 0 || signed !== false,
    part: 'signatures',
  },
  {
    name: 'reasoning',
    ask: { text: 'Think', reasons: true },
    sent: ({ reasons }) => reasons,
    returned: ({ reasoning }) => reasoning === 'Let me see.',
  },
  {
    name: 'streamed reasoning',
    ask: { text: 'Think it', reasons: true, streaming: true },
    sent: ({ reasons }) => reasons,
    returned: ({ reasoning }) => reasoning === 'Let me see.',
  },
  {
    name: 'stop sequences',
    ask: { text: 'Count', stop: 'three' },
    absentIn: ['responses'],
    sent: ({ stops }) => stops[0] === 'three',
  },
]

/** Parts of a feature that are lost between client and vendor; empty if it is complete. */
export function lossesOf({ sent, returned, part }: Feature, received: Received, answer: Answer): string[] {
  const generated = generate(received)
  const calls = generated.calls.map(({ name, input }) => JSON.stringify([name, input]))
  const { tokens } = answer
  const checks: [lost: string, isComplete: boolean][] = [
    ['system prompt', received.text.includes('You are terse.')],
    [part ?? 'request', sent?.(received) ?? true],
    // Some APIs have the reason of a refusal as the text.
    [
      'text',
      answer.text === generated.text || (generated.finish === 'filtered' && answer.text === answer.refusal),
    ],
    ['calls', answer.calls.map(({ name, input }) => JSON.stringify([name, input])).join() === calls.join()],
    [part ?? 'response', returned?.(answer) ?? true],
    ['tokens', tokens.input === generated.tokens.input && tokens.output === generated.tokens.output],
  ]
  return checks.flatMap(([lost, isComplete]) => (isComplete ? [] : [lost]))
}
