import type { CompileContext } from '../../pipeline/compile-context.ts'

/** Compile results by configuration node, state by name, and the files that the results were made of. */
export type CompileCache = Pick<CompileContext, 'cached' | 'retained' | 'readFile' | 'readFileNow'> & {
  /**
   * Starts a compilation; the next call of `files` covers the results used since then. Evicts files that are
   * not `watched`: changes to them are not reported. They belong to a configuration that was not committed.
   */
  begin(watched: ReadonlySet<string>): void
  /** Paths and contents of the files behind the results used since `begin`. */
  files(): ReadonlyMap<string, string>
  /** Evicts the content of a file and every result made of it. */
  evictFile(path: string): void
}

/** Files behind a result. Contents are compared by identity: a file read again has another one. */
type FilesRead = Map<string, FileContent>
type FileContent = { readonly text: string }

/** Creates an empty cache. `readText` reads a file. */
export function createCompileCache(readText: (path: string) => string): CompileCache {
  const files = createFileCache(readText)
  return {
    cached: createResultCache(files),
    retained: createRetainedState(),
    readFile: files.read,
    readFileNow: readText,
    begin: files.begin,
    files: () => new Map([...files.used()].map(([path, { text }]) => [path, text])),
    evictFile: files.evict,
  }
}

type FileCache = {
  read(path: string): string
  begin(watched: ReadonlySet<string>): void
  /** Files used since `begin`. */
  used(): FilesRead
  evict(path: string): void
  /** Runs `create` and records the files that it reads. */
  record<T>(create: () => T): { result: T; files: FilesRead }
  /** Whether no file has changed since; then they count as used. */
  reuse(files: FilesRead | undefined): boolean
}

function createFileCache(readText: (path: string) => string): FileCache {
  const contents = new Map<string, FileContent>()
  let used: FilesRead = new Map()
  /** Files of the results being created, the innermost last. */
  const recordings: FilesRead[] = []

  function use(path: string, content: FileContent): void {
    used.set(path, content)
    for (const recording of recordings) recording.set(path, content)
  }

  return {
    read(path) {
      let content = contents.get(path)
      if (content === undefined) {
        content = { text: readText(path) }
        contents.set(path, content)
      }
      use(path, content)
      return content.text
    },
    begin(watched) {
      for (const path of contents.keys()) if (!watched.has(path)) contents.delete(path)
      used = new Map()
    },
    used: () => used,
    evict(path) {
      contents.delete(path)
    },
    record<T>(create: () => T) {
      const files: FilesRead = new Map()
      recordings.push(files)
      try {
        return { result: create(), files }
      } finally {
        recordings.pop()
      }
    },
    reuse(files) {
      if (files === undefined) return true
      for (const [path, content] of files) if (contents.get(path) !== content) return false
      for (const [path, content] of files) use(path, content)
      return true
    },
  }
}

function createResultCache(files: FileCache): CompileContext['cached'] {
  const results = new WeakMap<object, Map<string, unknown>>()
  /** Separate from the results: there may be 100,000 results, and few of them read files. */
  const filesOfResults = new WeakMap<object, Map<string, FilesRead>>()

  return <T>(node: object, purpose: string, create: () => T): T => {
    const byPurpose = entryOf(results, node)
    const isCached = byPurpose.has(purpose) && files.reuse(filesOfResults.get(node)?.get(purpose))
    if (isCached) return byPurpose.get(purpose) as T
    const recorded = files.record(create)
    byPurpose.set(purpose, recorded.result)
    if (recorded.files.size > 0) entryOf(filesOfResults, node).set(purpose, recorded.files)
    return recorded.result
  }
}

/** Weak references: state lives as long as a snapshot, or a request on an older snapshot, uses it. */
function createRetainedState(): CompileContext['retained'] {
  const states = new Map<string, WeakRef<object>>()
  const collected = new FinalizationRegistry<string>((name) => {
    if (states.get(name)?.deref() === undefined) states.delete(name)
  })

  return <T extends object>(name: string, create: () => T): T => {
    const existing = states.get(name)?.deref()
    if (existing !== undefined) return existing as T
    const state = create()
    states.set(name, new WeakRef(state))
    collected.register(state, name)
    return state
  }
}

function entryOf<V>(entries: WeakMap<object, Map<string, V>>, node: object): Map<string, V> {
  const existing = entries.get(node)
  if (existing !== undefined) return existing
  const created = new Map<string, V>()
  entries.set(node, created)
  return created
}
