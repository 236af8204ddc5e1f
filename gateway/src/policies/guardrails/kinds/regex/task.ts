import { setImmediate } from 'node:timers/promises'
import { createLru } from '../../../../lib/lru.ts'
import { type ThreadPool, ThreadPoolError } from '../../../../lib/scheduling/thread-pool.ts'
import { CheckFailure } from '../../guard.ts'
import { compileSearch, type RuleConfig, type Search } from './search.ts'

/** Name of the task in the pool of threads. */
export const searchTask = 'regex guard'

type Request = { rules: readonly RuleConfig[]; masks: boolean; texts: readonly string[] }

/** Result of a search: whether there is a match, and the masked texts. */
export type SearchResult = { found: boolean; masked: string[] | undefined }

/** Searches in the current thread. */
export function searchIn(search: Search, masks: boolean, texts: readonly string[]): SearchResult {
  if (!masks) return { found: search.finds(texts), masked: undefined }
  const masked = search.mask(texts)
  return { found: masked !== undefined, masked }
}

/** Creates the worker task, with a cache of compiled rules. */
export function createSearchTask(): (request: Request) => SearchResult {
  const searches = createLru<string, Search>(64)
  return ({ rules, masks, texts }) => {
    const key = JSON.stringify(rules)
    let search = searches.get(key)
    if (search === undefined) {
      search = compileSearch(rules)
      searches.set(key, search)
    }
    return searchIn(search, masks, texts)
  }
}

/** Deadline including the wait for a thread. */
const deadlineMs = 10_000

/** Maximum characters copied to a thread in one step: below 1 ms each way. */
const maxBatchChars = 1024 * 1024

/** Maximum texts copied in one step: all texts of a large body take 60 ms, batches of 4,000 up to 48 ms. */
const maxBatchTexts = 1_000

/** Searches on a worker thread, in batches of texts. Throws `CheckFailure` if there is no result in time. */
export async function searchOnThread(threads: ThreadPool, request: Request): Promise<SearchResult> {
  const endsAt = performance.now() + deadlineMs
  const { rules, masks, texts } = request
  const masked: string[] = []
  let found = false
  for (const batch of batchesOf(texts)) {
    // Yields before each batch, whose texts and previous result are processed in one turn.
    await setImmediate()
    const result = await searchBatch(threads, { rules, masks, texts: batch }, endsAt - performance.now())
    if (result.found && !masks) return result
    found ||= result.found
    for (const text of result.masked ?? batch) masked.push(text)
  }
  return { found, masked: found ? masked : undefined }
}

function* batchesOf(texts: readonly string[]): Generator<readonly string[]> {
  let batch: string[] = []
  let chars = 0
  for (const text of texts) {
    if (batch.length > 0 && (chars + text.length > maxBatchChars || batch.length >= maxBatchTexts)) {
      yield batch
      batch = []
      chars = 0
    }
    batch.push(text)
    chars += text.length
  }
  if (batch.length > 0) yield batch
}

async function searchBatch(threads: ThreadPool, request: Request, leftMs: number): Promise<SearchResult> {
  const bytes = request.texts.reduce((sum, { length }) => sum + 2 * length, 0)
  try {
    const answer = await threads.run(searchTask, request, { deadlineMs: Math.max(1, leftMs), bytes })
    if (isFound(answer, request)) return answer
  } catch (cause) {
    throw new CheckFailure(cause instanceof ThreadPoolError ? cause.message : 'a search failed', { cause })
  }
  throw new CheckFailure('a search failed')
}

function isFound(answer: unknown, { masks, texts }: Request): answer is SearchResult {
  if (typeof answer !== 'object' || answer === null || !('found' in answer)) return false
  if (!('masked' in answer) || typeof answer.found !== 'boolean') return false
  if (!masks || !answer.found) return true
  return Array.isArray(answer.masked) && answer.masked.length === texts.length
}
