import { spliceJson } from '../../lib/json/splice.ts'
import { type JsonText, readJsonObject } from '../../lib/json/text.ts'
import type { ThreadPool } from '../../lib/scheduling/thread-pool.ts'
import type { LlmApi } from '../../pipeline/llm-message.ts'
import { contentReaders } from './content/content.ts'
import { type GuardedText, splicesFor } from './content/content-reader.ts'
import { createReading } from './content/reading.ts'
import type { ContentScope } from './content/scopes/content-scope.ts'
import { readTexts } from './content/scopes/split.ts'
import type { Phase } from './guard.ts'

/** Name of the task in the pool of threads. */
export const writeBackTask = 'guard write-back'

type Place = { api: LlmApi; phase: Phase }
/** Scopes of the reading, which determine the texts. */
type Scopes = ReadonlySet<ContentScope> | undefined
type Changed = Place & {
  json: JsonText
  texts: readonly GuardedText[]
  contents: readonly string[]
  scopes: Scopes
}
type Request = Place & { bytes: Uint8Array; contents: readonly string[]; scopes: Scopes }

const deadlineMs = 10_000
/** Modified texts are compared without limits other than the body size. */
const noLimits = { maxDepth: 1000, maxMembers: Number.MAX_SAFE_INTEGER, maxElements: Number.MAX_SAFE_INTEGER }

/** Returns the body with modified texts. A large body is written on a worker thread. */
export function writeBack(
  { api, phase, json, texts, contents, scopes }: Changed,
  threads: ThreadPool,
): Buffer | Promise<Buffer> {
  const { large } = json
  if (large === undefined) return Buffer.from(spliced({ api, phase }, json.text, texts, contents))
  const { bytes } = large
  const request: Request = { api, phase, bytes, contents, scopes }
  return threads.run(writeBackTask, request, { deadlineMs, bytes: 2 * bytes.byteLength }).then((written) => {
    if (written instanceof Uint8Array)
      return Buffer.from(written.buffer, written.byteOffset, written.byteLength)
    throw new Error('a thread returned no body')
  })
}

/** Worker task: parses the body again, because only the body and the new contents are transferred. */
export function runWriteBack({ api, phase, bytes, contents, scopes }: Request): Uint8Array {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
  const json = readJsonObject(text, noLimits)
  if (json.kind !== 'object') throw new Error('the body cannot be read again')
  const texts = readTexts(contentReaders[api], json.value, createReading(phase, scopes))
  return Buffer.from(spliced({ api, phase }, text, texts, contents))
}

function spliced(
  { api, phase }: Place,
  text: string,
  texts: readonly GuardedText[],
  contents: readonly string[],
): string {
  const reader = contentReaders[api]
  const { emptyLogprobs: noEcho } = reader
  // Providers refuse request parts without text; responses may have them.
  const splices = splicesFor(texts, contents, {
    emptyLogprobs: noEcho,
    dropsEmptied: phase === 'request' && reader.dropsEmptied,
  })
  return splices.length === 0 ? text : spliceJson(text, splices)
}
