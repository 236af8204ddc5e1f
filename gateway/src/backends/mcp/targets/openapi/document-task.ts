import { deserialize, serialize } from 'node:v8'
import type { ThreadPool } from '../../../../lib/scheduling/thread-pool.ts'
import type { WorkQueue } from '../../../../lib/scheduling/work-queue.ts'
import { type ApiDocument, type Operation, type ReadDocument, readApiDocument } from './document.ts'

/** Name of the task in the pool of threads. */
export const documentTask = 'OpenAPI document'

const maxJsonChars = 16 * 1024 * 1024
/** Reading YAML takes many times as long as reading JSON. */
const maxYamlChars = 2 * 1024 * 1024
const deadlineMs = 30_000
/** Reading 16 KiB of YAML takes some 20 ms with cold code. */
const maxInlineBytes = 16 * 1024

type ParseYaml = (text: string) => unknown

/** A document with its operations as bytes: each is read by itself. */
type SerializedDocument =
  | { kind: 'document'; document: Omit<ApiDocument, 'operations'>; operations: Uint8Array[] }
  | Extract<ReadDocument, { kind: 'mistakes' }>

/** Reads the text of a document, JSON or YAML. */
export function parseDocument(text: string, parseYaml: ParseYaml): ReadDocument {
  const isJson = /^\s*\{/.test(text)
  const limit = isJson ? maxJsonChars : maxYamlChars
  if (text.length > limit) return mistake(`it is larger than ${limit} characters`)
  try {
    return readApiDocument(isJson ? JSON.parse(text) : parseYaml(text))
  } catch (error) {
    return mistake(error instanceof Error ? error.message : 'cannot be read')
  }
}

/** The thread's side. */
export function createDocumentTask(parseYaml: ParseYaml): (bytes: Uint8Array) => SerializedDocument {
  return (bytes) => {
    const read = parseDocument(new TextDecoder().decode(bytes), parseYaml)
    if (read.kind === 'mistakes') return read
    const { operations, ...document } = read.document
    return {
      kind: 'document',
      document,
      operations: [...operations.values()].map((operation) => serialize(operation)),
    }
  }
}

export type DocumentContext = { parseYaml: ParseYaml; threads: ThreadPool; workQueue: WorkQueue }

/** Reads a document that a server has sent: a large one on a thread, and its operations in workQueue with traffic. */
export async function readFetchedDocument(
  bytes: Buffer,
  { parseYaml, threads, workQueue }: DocumentContext,
): Promise<ReadDocument> {
  if (bytes.byteLength <= maxInlineBytes) return parseDocument(bytes.toString(), parseYaml)
  let written: unknown
  try {
    written = await threads.run(documentTask, bytes, { deadlineMs, bytes: bytes.byteLength })
  } catch (error) {
    return mistake(error instanceof Error ? error.message : 'cannot be read')
  }
  if (!isSerializedDocument(written)) return mistake('cannot be read')
  if (written.kind === 'mistakes') return written
  const operations = await workQueue.run(readOperations(written.operations))
  return { kind: 'document', document: { ...written.document, operations } }
}

function* readOperations(pieces: readonly Uint8Array[]): Generator<void, Map<string, Operation>> {
  const operations = new Map<string, Operation>()
  for (const piece of pieces) {
    const operation: Operation = deserialize(piece)
    operations.set(operation.name, operation)
    yield
  }
  return operations
}

/** Guard of what `createDocumentTask` returns, copied from its thread. */
function isSerializedDocument(value: unknown): value is SerializedDocument {
  return (
    typeof value === 'object' &&
    value !== null &&
    'kind' in value &&
    (value.kind === 'mistakes' || (value.kind === 'document' && 'operations' in value))
  )
}

function mistake(message: string): ReadDocument {
  return { kind: 'mistakes', mistakes: [{ place: [], message }] }
}
