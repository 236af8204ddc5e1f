import { type Generated, pieces, signature, textsOf, valuesOf } from './scripted-model.ts'
import { dataEvent, type Json, sse, type Wire } from './wire.ts'

/** https://ai.google.dev/api/generate-content */
export const geminiWire: Wire = {
  name: 'generate_content',
  reportsReasoning: true,
  streamType: sse,
  read({ contents, systemInstruction, tools, generationConfig = {} }) {
    const media = valuesOf(contents, 'inlineData') as { mimeType: string; data: string }[]
    const ofType = (type: string) =>
      media.filter(({ mimeType }) => mimeType.startsWith(type)).map(({ data }) => data)
    const config = generationConfig as Json
    return {
      text: [...textsOf(systemInstruction, 'text'), ...textsOf(contents, 'text')].join('\n'),
      images: ofType('image/'),
      documents: ofType('application/pdf'),
      tools: textsOf(valuesOf(tools ?? [], 'functionDeclarations'), 'name'),
      results: valuesOf(contents, 'functionResponse')
        .flatMap((response) => valuesOf(response, 'response'))
        // Clients choose the member of the result.
        .map((response) => ['output', 'content', 'result'].flatMap((name) => textsOf(response, name)).join()),
      stops: (config['stopSequences'] ?? []) as string[],
      hasSchema: config['responseJsonSchema'] !== undefined || config['responseSchema'] !== undefined,
      reasons: valuesOf(config, 'includeThoughts').includes(true),
      audio: ofType('audio/'),
      marks: 0,
      logprobs: config['responseLogprobs'] === true,
      single: false,
      signed: valuesOf(contents, 'thoughtSignature').includes(signature),
    }
  },
  whole(generated) {
    if (generated.finish === 'blocked')
      return { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: usageOf(generated), ...head }
    const candidate = { content: { role: 'model', parts: partsOf(generated) }, ...endOf(generated), index: 0 }
    return { candidates: [candidate], usageMetadata: usageOf(generated), ...head }
  },
  events(generated) {
    const parts = partsOf(generated).flatMap((part) =>
      typeof part['text'] === 'string' && part['text'] !== ''
        ? pieces(part['text']).map((text) => ({ ...part, text }))
        : [part],
    )
    return parts.map((part, index) => {
      const isLast = index === parts.length - 1
      const candidate = {
        content: { role: 'model', parts: [part] },
        index: 0,
        ...(isLast && endOf(generated)),
      }
      const { promptTokenCount, cachedContentTokenCount, ...output } = usageOf(generated)
      const begun = { promptTokenCount, cachedContentTokenCount, totalTokenCount: promptTokenCount }
      const usageMetadata = isLast ? { ...begun, ...output } : begun
      return dataEvent({ candidates: [candidate], usageMetadata, ...head })
    })
  },
}

const head = { modelVersion: 'gemini-3-pro', responseId: 'resp-1' }

function endOf({ finish, refusal, text, citation, logprobs }: Generated): Json {
  const chosenCandidates = pieces(text).map((token) => ({ token, logProbability: -0.5 }))
  return {
    finishReason: finish === 'filtered' ? 'SAFETY' : 'STOP',
    ...(refusal !== undefined && { finishMessage: refusal }),
    ...(logprobs && { logprobsResult: { chosenCandidates, topCandidates: [] } }),
    ...(citation && { groundingMetadata: groundingOf(text, citation) }),
  }
}

/** The whole text is cited; positions count its bytes. */
function groundingOf(text: string, { url, title }: { url: string; title: string }): Json {
  return {
    webSearchQueries: ['zurich'],
    groundingChunks: [{ web: { uri: url, title } }],
    groundingSupports: [{ segment: { endIndex: Buffer.byteLength(text), text }, groundingChunkIndices: [0] }],
  }
}

function partsOf({ reasoning, text, calls, refusal }: Generated): Json[] {
  if (refusal !== undefined) return [{ text: '' }]
  return [
    ...(reasoning === '' ? [] : [{ text: reasoning, thought: true }]),
    ...(text === '' ? [] : [{ text }]),
    ...calls.map(({ name, input }, index) => ({
      functionCall: { name, args: input },
      ...(index === 0 && { thoughtSignature: signature }),
    })),
  ]
}

/** Thoughts are counted beside the candidates; the prompt includes its cached part. */
function usageOf({ tokens: { input, cached, output, reasoning } }: Generated): Json {
  return {
    promptTokenCount: input,
    cachedContentTokenCount: cached,
    candidatesTokenCount: output - reasoning,
    ...(reasoning > 0 && { thoughtsTokenCount: reasoning }),
    totalTokenCount: input + output,
  }
}
