import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { createSealedIds } from '../stored/sealed-ids.ts'
import type { ObjectEndpoint } from './object-path.ts'

/** Calls and expected tokens of the requests of a batch, as checked. */
export type BatchFacts = {
  /** Client API of the requests. */
  readonly endpoint: string
  readonly inputTokens: number
  readonly outputTokens: number
}

/** A file or batch at a provider. */
export type StoredObject = {
  /** Id at the provider. */
  readonly id: string
  /** Model as requested by the client that created it, and the configured one whose provider has it. */
  readonly requestModel: string
  readonly configuredModel: string
  /** `placeOf` its target. */
  readonly place: string
  /** Undefined for a file whose requests were not checked, which no batch accepts. */
  readonly batch: BatchFacts | undefined
  /** Id of the input file of a batch at the provider. */
  readonly inputFile: string | undefined
}

/** Ids of files and batches for clients. They contain everything that is needed to find the object. */
export type ObjectIds = {
  seal(endpoint: ObjectEndpoint, object: StoredObject, owner: string): string
  /** Undefined for ids of other owners and other texts. */
  open(endpoint: ObjectEndpoint, id: string, owner: string): StoredObject | undefined
}

/** Creates ids that name object and owner. */
export function createObjectIds(context: Pick<CompileContext, 'sessionKey' | 'processKey'>): ObjectIds {
  const ids = {
    files: createSealedIds(context, { purpose: 'llm-files', prefix: 'file-' }),
    batches: createSealedIds(context, { purpose: 'llm-batches', prefix: 'batch_' }),
    message_batches: createSealedIds(context, { purpose: 'llm-message-batches', prefix: 'msgbatch_' }),
    anthropic_files: createSealedIds(context, { purpose: 'llm-anthropic-files', prefix: 'file_' }),
  }
  return {
    seal(endpoint, { id, requestModel, configuredModel, place, batch, inputFile = '' }, owner) {
      const counts = batch ? [batch.endpoint, `${batch.inputTokens}`, `${batch.outputTokens}`] : ['', '', '']
      return ids[endpoint].seal([id, requestModel, configuredModel, place, ...counts, inputFile], owner)
    },
    open(endpoint, text, owner) {
      const [id, requestModel, configuredModel, place, api, input, output, inputFile] =
        ids[endpoint].open(text, owner) ?? []
      if (id === undefined || requestModel === undefined) return undefined
      if (configuredModel === undefined || place === undefined) return undefined
      const batch = api
        ? { endpoint: api, inputTokens: Number(input), outputTokens: Number(output) }
        : undefined
      return { id, requestModel, configuredModel, place, batch, inputFile: inputFile || undefined }
    },
  }
}
