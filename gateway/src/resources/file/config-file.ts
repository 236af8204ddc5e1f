import type { ConfigTree } from '../../config/load/validate.ts'
import type { FileWriting } from '../../config/load/write-file.ts'
import type { Config } from '../../config/schema.ts'
import type { FileIndex } from '../records/file-index.ts'
import type { RevisionKey } from '../records/revision.ts'
import type { FileEdit, FileEditRequest } from './file-edit.ts'

/** The configuration file, for changes through the API. */
export type ConfigFile = {
  readonly path: string
  readonly revisionKey: RevisionKey
  /** Reads the current text. */
  read(): Promise<string>
  /** Calls `editFile`, on another thread if the file is large. */
  edit(request: Omit<FileEditRequest, 'env' | 'allowedEnv' | 'revisionKey'>): Promise<FileEdit>
  /** Loads a text as the configuration; unchanged parts are the same objects. Throws `ConfigRejected`. */
  load(text: string): Promise<Config>
  /** Configurations of the active text and of the latest one of `load`, with `config.*` as written. */
  written(): { readonly current: ConfigTree; readonly latest: ConfigTree }
  /** Replaces the text if the file still has the expected one. */
  write(text: string, expected: string): Promise<FileWriting>
  /** Lines and references of the active text. */
  index(): FileIndex | undefined
  /** Called after the text was written and activated, so that the watcher does not load it again. */
  activated(text: string, config: Config): void
}
