import type { CompileContext } from '../../pipeline/compile-context.ts'

export type CompileMemory = Pick<CompileContext, 'memo' | 'keep' | 'readFile'> & {
  /**
   * To be called before compiling: what is read or remembered from now on is what the next `files` tells. Contents that are
   * not of `watched` files are let go of, because nobody would tell when they change: those that a configuration led to that
   * was given up.
   */
  begin(watched: ReadonlySet<string>): void
  /** The files that what was compiled since `begin` was made of, with their contents. */
  files(): ReadonlyMap<string, string>
  /** Lets go of a file's content, and of every result that was made of it. */
  forgetFile(path: string): void
}

/** What a result was made of: contents of files by path. Compared by identity, so a file read again is another one. */
type FilesRead = Map<string, FileContent>
type FileContent = { readonly text: string }

/** The memories of compiling: results by config node, state that outlives the nodes, and the files that were read. */
export function createCompileMemory(readText: (path: string) => string): CompileMemory {
  const results = new WeakMap<object, Map<string, unknown>>()
  /** Apart from the results, because few of them read files and there may be 100,000. */
  const filesOfResults = new WeakMap<object, Map<string, FilesRead>>()
  // Weak, so that state lives exactly as long as some snapshot, or a request still on an old one, uses it.
  const states = new Map<string, WeakRef<object>>()
  const dropped = new FinalizationRegistry<string>((name) => {
    if (states.get(name)?.deref() === undefined) states.delete(name)
  })
  const contents = new Map<string, FileContent>()
  let used: FilesRead = new Map()
  /** Files read by the results being made, the innermost last. */
  const readers: FilesRead[] = []

  function note(path: string, content: FileContent): void {
    used.set(path, content)
    for (const reader of readers) reader.set(path, content)
  }

  /** False when a file that a result was made of has changed since. */
  function isCurrent(files: FilesRead | undefined): boolean {
    if (files === undefined) return true
    for (const [path, content] of files) if (contents.get(path) !== content) return false
    for (const [path, content] of files) note(path, content)
    return true
  }

  function make<T>(create: () => T): { result: T; files: FilesRead } {
    const files: FilesRead = new Map()
    readers.push(files)
    try {
      return { result: create(), files }
    } finally {
      readers.pop()
    }
  }

  return {
    memo<T>(node: object, purpose: string, create: () => T): T {
      const byPurpose = entryOf(results, node)
      const known = byPurpose.has(purpose) && isCurrent(filesOfResults.get(node)?.get(purpose))
      if (known) return byPurpose.get(purpose) as T
      const { result, files } = make(create)
      byPurpose.set(purpose, result)
      if (files.size > 0) entryOf(filesOfResults, node).set(purpose, files)
      return result
    },
    keep<T extends object>(name: string, create: () => T): T {
      const known = states.get(name)?.deref()
      if (known !== undefined) return known as T
      const state = create()
      states.set(name, new WeakRef(state))
      dropped.register(state, name)
      return state
    },
    readFile(path) {
      let content = contents.get(path)
      if (content === undefined) {
        content = { text: readText(path) }
        contents.set(path, content)
      }
      note(path, content)
      return content.text
    },
    begin(watched) {
      for (const path of contents.keys()) if (!watched.has(path)) contents.delete(path)
      used = new Map()
    },
    files: () => new Map([...used].map(([path, { text }]) => [path, text])),
    forgetFile(path) {
      contents.delete(path)
    },
  }
}

function entryOf<V>(entries: WeakMap<object, Map<string, V>>, node: object): Map<string, V> {
  const known = entries.get(node)
  if (known !== undefined) return known
  const made = new Map<string, V>()
  entries.set(node, made)
  return made
}
