import { type LocatedMistake, mistakesOf, reasonsOf } from '../../config/config-rejected.ts'
import type { PreparedConfig } from '../../config/live/live.ts'
import type { Config } from '../../config/schema.ts'
import type { Path } from '../../schema/path.ts'
import type { Log } from '../../telemetry/log.ts'
import { type Refusal, refusal } from '../change/change.ts'
import { preconditionFails } from '../change/precondition.ts'
import { textRevision } from '../records/revision.ts'
import type { FileText, Requester, ResourceHost } from '../resources.ts'
import { type ChangedPart, changedParts, maskedChange, maxChanges } from './config-changes.ts'
import type { ConfigFile } from './config-file.ts'
import { findTextRestriction } from './file-restrictions.ts'
import type { FoundText, TextChangeOutcome, TextChangeRequest } from './text-change.ts'

export type FileTextOptions = {
  readonly file: ConfigFile
  readonly host: ResourceHost
  readonly log: Log
  readonly readOnly: Refusal | undefined
  /** Compiles a configuration of the file. Undefined if it is not active by itself. */
  readonly prepare: ((config: Config) => Promise<PreparedConfig>) | undefined
  /** Called with the configuration of a written text after its activation. */
  activated(config: Config): void
}

/** Largest text that the API reads and writes, in characters. */
const maxTextLength = 2 * 1024 * 1024

export function createFileText(options: FileTextOptions): FileText {
  const { file, host, readOnly } = options

  async function read(): Promise<FoundText | Refusal> {
    try {
      const text = await file.read()
      if (text.length > maxTextLength)
        return refusal(413, 'the configuration file is larger than 2 MiB: edit it on its machine')
      return { kind: 'found', text, revision: textRevision(text, file.revisionKey) }
    } catch (error) {
      return refusal(500, reasonsOf(error).join('\n'))
    }
  }

  return {
    path: file.path,
    readOnly,
    read,
    async replace(request, requester) {
      if (readOnly !== undefined && !request.dryRun) return readOnly
      return await host.exclusive(async () => {
        const found = await read()
        if (found.kind === 'refused') return found
        const failed = preconditionFails(request.ifMatch, found.revision)
        return failed ?? (await change(request, found, requester))
      })
    },
  }

  async function change(
    request: TextChangeRequest,
    { text: previousText, revision }: FoundText,
    requester: Requester,
  ): Promise<TextChangeOutcome | Refusal> {
    const { text, dryRun, allowances } = request
    const attempt = await prepareText(text, options)
    if (attempt.kind === 'mistakes')
      return { kind: 'text', mistakes: attempt.mistakes, changes: [], needsRestart: false, revision }
    const { config, prepared } = attempt
    const { current: before, latest: after } = file.written()
    const changes = [...limited(changedParts(before, after))]
    const reason = findTextRestriction({ text, previousText, changes, before, after }, allowances)
    const outcome = {
      kind: 'text',
      mistakes: [],
      changes: changes.slice(0, maxChanges).map(maskedChange),
      needsRestart: changes.some(({ path }) => isReadAtStart(path)),
    } as const
    if (reason !== undefined || dryRun || text === previousText) {
      prepared?.abort()
      return reason === undefined ? { ...outcome, revision } : refusal(403, reason)
    }
    const writing = await file.write(text, previousText).catch((error: unknown) => {
      prepared?.abort()
      throw error
    })
    if (writing.kind !== 'written') {
      prepared?.abort()
      return writing.kind === 'refused'
        ? refusal(500, writing.message)
        : refusal(412, 'if-match: the file was changed meanwhile')
    }
    await prepared?.commit()
    options.activated(config)
    file.activated(text, config)
    const fields = outcome.changes.map(({ path }) => path)
    options.log.audit({ op: 'put', kind: 'file', fields, ...requester }, 'configuration file changed')
    return { ...outcome, revision: textRevision(text, file.revisionKey) }
  }
}

/** Settings of `config` other than the reloadable ones. */
function isReadAtStart([section, first, second]: Path): boolean {
  if (section !== 'config') return false
  return first !== 'modelCatalog' && !(first === 'logging' && second === 'level')
}

/** Changes for the check of restrictions, far above those of a response. */
const maxExamined = 100_000

function* limited(changes: Iterable<ChangedPart>): Generator<ChangedPart> {
  let count = 0
  for (const change of changes) {
    count += 1
    if (count > maxExamined) throw new RangeError('too many changes')
    yield change
  }
}

type Attempt =
  | { readonly kind: 'mistakes'; readonly mistakes: readonly LocatedMistake[] }
  | { readonly kind: 'prepared'; readonly config: Config; readonly prepared: PreparedConfig | undefined }

async function prepareText(text: string, { file, prepare }: FileTextOptions): Promise<Attempt> {
  try {
    const config = await file.load(text)
    return { kind: 'prepared', config, prepared: await prepare?.(config) }
  } catch (error) {
    return { kind: 'mistakes', mistakes: mistakesOf(error) }
  }
}
