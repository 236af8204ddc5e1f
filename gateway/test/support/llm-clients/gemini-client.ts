import { type Answer, type ApiClient, type Ask, type Json, joined, system } from './client.ts'

type Part = Json & { text?: string; thought?: boolean; functionCall?: Json }
type Support = { segment: { startIndex?: number; endIndex: number }; groundingChunkIndices: number[] }
type Grounding = { groundingChunks?: { web?: { uri: string } }[]; groundingSupports?: Support[] }
type Candidate = {
  content: { parts?: Part[] }
  finishReason?: string
  finishMessage?: string
  groundingMetadata?: Grounding
  logprobsResult?: { chosenCandidates?: { token: string }[] }
}

/** Clients with Google's `generateContent`. */
export const geminiClient: ApiClient = {
  api: 'generate_content',
  path: (model, { streaming }) =>
    `/v1beta/models/${model}:${streaming ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  body: (_, ask) => ({
    contents: contentsOf(ask),
    systemInstruction: { parts: [{ text: system }] },
    ...(ask.tool && {
      tools: [{ functionDeclarations: [{ name: ask.tool, parametersJsonSchema: ask.schema }] }],
    }),
    generationConfig: {
      maxOutputTokens: 4000,
      ...(ask.schema &&
        !ask.tool && { responseMimeType: 'application/json', responseJsonSchema: ask.schema }),
      ...(ask.stop && { stopSequences: [ask.stop] }),
      ...(ask.logprobs && { responseLogprobs: true, logprobs: 1 }),
      ...(ask.reasons && { thinkingConfig: { includeThoughts: true, thinkingBudget: 2048 } }),
    },
  }),
  read: (body) => answerOf([body]),
  readStream: (events) => answerOf(events),
  error({ error }) {
    if (typeof error !== 'object' || error === null) return undefined
    const { status, message, details } = error as Json
    const [info] = (details ?? []) as { reason?: string }[]
    return { type: status, code: info?.reason, message }
  },
}

function contentsOf({ text, image, document, audio, previous, results = [] }: Ask): Json[] {
  const inline = (mimeType: string, data: string) => ({ inlineData: { mimeType, data } })
  const parts = [
    { text },
    ...(audio ? [inline('audio/wav', audio)] : []),
    ...(image ? [inline('image/png', image)] : []),
    ...(document ? [inline('application/pdf', document)] : []),
  ]
  const responses = results.map((output, index) => {
    const { id, name } = previous?.calls[index] ?? {}
    return { functionResponse: { ...(id && { id }), name, response: { output } } }
  })
  return [
    { role: 'user', parts },
    ...(previous
      ? [
          { role: 'model', parts: previous.turn },
          { role: 'user', parts: responses },
        ]
      : []),
  ]
}

function answerOf(bodies: readonly Json[]): Answer {
  const candidates = bodies.flatMap(({ candidates: found = [] }) => found as Candidate[])
  const parts = candidates.flatMap(({ content }) => content?.parts ?? [])
  const texts = (isThought: boolean) =>
    joined(parts.filter(({ thought = false }) => thought === isThought).map(({ text }) => text))
  const usage = (bodies.at(-1)?.['usageMetadata'] ?? {}) as Record<string, number>
  const text = texts(false)
  const last = candidates.at(-1)
  const isRefused = last?.finishReason === 'SAFETY'
  return {
    text,
    // The explanation is a text if the provider has sent it as one.
    refusal: isRefused ? (last.finishMessage ?? text) : '',
    citations: candidates.flatMap(({ groundingMetadata }) => citationsOf(groundingMetadata, text)),
    logprobs: joined(
      candidates
        .flatMap(({ logprobsResult }) => logprobsResult?.chosenCandidates ?? [])
        .map(({ token }) => token),
    ),
    reasoning: texts(true),
    calls: parts.flatMap(({ functionCall: call }) =>
      call ? [{ id: String(call['id'] ?? ''), name: String(call['name']), input: call['args'] }] : [],
    ),
    finish: candidates.at(-1)?.finishReason ?? (bodies.at(-1)?.['promptFeedback'] as Json)?.['blockReason'],
    tokens: {
      input: usage['promptTokenCount'],
      output: (usage['candidatesTokenCount'] ?? 0) + (usage['thoughtsTokenCount'] ?? 0),
    },
    turn: parts,
  }
}

/** The whole text is cited; positions count its bytes. */
function citationsOf(
  { groundingChunks = [], groundingSupports = [] }: Grounding = {},
  text: string,
): unknown[] {
  return groundingSupports.flatMap(({ segment, groundingChunkIndices }) => {
    const isWhole = (segment.startIndex ?? 0) === 0 && segment.endIndex === Buffer.byteLength(text)
    return groundingChunkIndices.map((index) => (isWhole ? groundingChunks[index]?.web?.uri : segment))
  })
}
