import { deserialize, serialize } from 'node:v8'
import type { ThreadPool } from '../../../../lib/scheduling/thread-pool.ts'
import type { WorkQueue } from '../../../../lib/scheduling/work-queue.ts'
import { type ApiDocument, type Operation, type ReadDocument, readApiDocument } from './document.ts'

/** Name of the task in the pool of threads. */
export const documentTask = 'OpenAPI document'

const maxJsonChars = 16 * 1024 * 1024
/** YAML parsing is much slower than JSON parsing. */
const maxYamlChars = 2 * 1024 * 1024
const deadlineMs = 30_000
/** 16 KiB of YAML take about 20 ms with cold code. */
const maxInlineBytes = 16 * 1024

type ParseYaml = (text: string) => unknown

/** Serialized document; operations are separate, so that each is deserialized in one step. */
type SerializedDocument =
  | { kind: 'document'; document: Omit<ApiDocument, 'operations'>; operations: Uint8Array[] }
  | Extract<ReadDocument, { kind: 'mistakes' }>

/** Parses a document, JSON or YAML. */
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

/** Creates the task of the worker thread. */
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

/**
 * Parses a fetched document: a large one in a worker thread, its operations cooperatively with other traffic.
 */
export async function readFetchedDocument(
  bytes: Buffer,
  { parseYaml, threads, workQueue }: DocumentContext,
): Promise<ReadDocument> {
  if (bytes.byteLength <= maxInlineBytes) return parseDocument(bytes.toString(), parseYaml)
  let serialized: unknown
  try {
    serialized = await threads.run(documentTask, bytes, { deadlineMs, bytes: bytes.byteLength })
  } catch (error) {
    return mistake(error instanceof Error ? error.message : 'cannot be read')
  }
  if (!isSerializedDocument(serialized)) return mistake('cannot be read')
  if (serialized.kind === 'mistakes') return serialized
  const operations = await workQueue.run(readOperations(serialized.operations))
  return { kind: 'document', document: { ...serialized.document, operations } }
}

function* readOperations(chunks: readonly Uint8Array[]): Generator<void, Map<string, Operation>> {
  const operations = new Map<string, Operation>()
  for (const chunk of chunks) {
    const operation: Operation = deserialize(chunk)
    operations.set(operation.name, operation)
    yield
  }
  return operations
}

/** Guard of the result of `createDocumentTask`, copied from its thread. */
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
