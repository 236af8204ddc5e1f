import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Settlement } from '../../../pipeline/limits/limits.ts'
import type { ClientEndpoint } from '../request/endpoints.ts'
import { createSealedIds } from '../stored/sealed-ids.ts'
import type { ObjectEndpoint } from './object-path.ts'

/** Calls and expected tokens of the requests of a batch, as checked. */
export type BatchFacts = {
  /** Client API of the requests. */
  readonly endpoint: ClientEndpoint
  readonly inputTokens: number
  readonly outputTokens: number
}

/** Amounts that the creation of a batch has charged, for its settlement. */
export type BatchCharge = BatchFacts & {
  /** Request id of the creation: a batch is settled once for it. */
  readonly request: string
  /** `processOf` the gateway that created the batch. */
  readonly process: string
  /** 0 without a price. */
  readonly picodollars: number
  readonly budgets: Settlement['budgets']
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
  /** Id at the provider of the input file of a batch, and of the upload of a part. */
  readonly inputFile: string | undefined
  /** Amounts that a batch was charged, also in the id of its results. Undefined in older ids. */
  readonly charge?: BatchCharge | undefined
}

/** Objects with an id: those of calls, and parts of uploads. */
export type SealedObject = ObjectEndpoint | 'upload_parts'

/** Ids of files and batches for clients. They contain everything that is needed to find the object. */
export type ObjectIds = {
  seal(kind: SealedObject, object: StoredObject, owner: string): string
  /** Undefined for ids of other owners and other texts. */
  open(kind: SealedObject, id: string, owner: string): StoredObject | undefined
}

/** Creates ids that name object and owner. */
export function createObjectIds(context: Pick<CompileContext, 'sessionKey' | 'processKey'>): ObjectIds {
  const ids = {
    files: createSealedIds(context, { purpose: 'llm-files', prefix: 'file-' }),
    batches: createSealedIds(context, { purpose: 'llm-batches', prefix: 'batch_' }),
    message_batches: createSealedIds(context, { purpose: 'llm-message-batches', prefix: 'msgbatch_' }),
    anthropic_files: createSealedIds(context, { purpose: 'llm-anthropic-files', prefix: 'file_' }),
    uploads: createSealedIds(context, { purpose: 'llm-uploads', prefix: 'upload_' }),
    upload_parts: createSealedIds(context, { purpose: 'llm-upload-parts', prefix: 'part_' }),
  }
  return {
    seal(kind, object, owner) {
      const { id, requestModel, configuredModel, place, batch, inputFile = '', charge } = object
      const counts = batch ? [batch.endpoint, `${batch.inputTokens}`, `${batch.outputTokens}`] : ['', '', '']
      const parts = [id, requestModel, configuredModel, place, ...counts, inputFile]
      return ids[kind].seal(charge ? [...parts, JSON.stringify(charge)] : parts, owner)
    },
    open(kind, text, owner) {
      const [id, requestModel, configuredModel, place, api, input, output, inputFile, charge] =
        ids[kind].open(text, owner) ?? []
      if (id === undefined || requestModel === undefined) return undefined
      if (configuredModel === undefined || place === undefined) return undefined
      const batch = api
        ? // Sealed by this function, as the charge.
          { endpoint: api as ClientEndpoint, inputTokens: Number(input), outputTokens: Number(output) }
        : undefined
      return {
        ...{ id, requestModel, configuredModel, place, batch, inputFile: inputFile || undefined },
        charge: charge === undefined ? undefined : (JSON.parse(charge) as BatchCharge),
      }
    },
  }
}
