import type { ExtProcConfig } from '../../../../../policies/ext-proc/config.ts'
import type { Path } from '../../../../../schema/path.ts'
import { fileValue } from '../../../../own-kinds/enumerations.ts'
import type { ExtProc } from '../../../../own-kinds/gateway-policy/ext-proc.ts'
import type { Lookups } from '../../lookups.ts'
import { resolveBackend } from '../resolve-backend.ts'
import { type Variant, variantsField } from '../variants.ts'

/** `traffic.extProc`. */
export const extProcField = variantsField<ExtProc, ExtProcConfig>({
  path: ['traffic', 'extProc'],
  place: 'extProc',
  select: ({ traffic }) => traffic?.extProc,
  translateOne: translateExtProc,
  policiesOf: (extProc) => ({ extProc }),
})

function translateExtProc(written: ExtProc, path: Path, lookups: Lookups): Variant<ExtProcConfig> {
  const { backendRef, failureMode, processingOptions, ...common } = written
  const { reference, isBroken, ...resolved } = resolveBackend(backendRef, [...path, 'backendRef'], lookups)
  return {
    config: {
      backend: reference,
      // A broken reference is a mistake, not an outage: the processor stays and refuses.
      ...(failureMode && !isBroken && { failureMode: fileValue(failureMode) }),
      ...(processingOptions && { processingOptions: optionsOf(processingOptions) }),
      ...common,
    },
    resolved,
    rename: (rest) => (rest[0] === 'backend' ? ['backendRef'] : rest),
  }
}

type Options = NonNullable<ExtProc['processingOptions']>

function optionsOf(options: Options): NonNullable<ExtProcConfig['processingOptions']> {
  const { requestHeaderMode, responseHeaderMode, requestBodyMode, responseBodyMode, ...others } = options
  const { requestTrailerMode, responseTrailerMode, ...flags } = others
  return {
    ...(requestHeaderMode && { requestHeaderMode: fileValue(requestHeaderMode) }),
    ...(responseHeaderMode && { responseHeaderMode: fileValue(responseHeaderMode) }),
    ...(requestBodyMode && { requestBodyMode: fileValue(requestBodyMode) }),
    ...(responseBodyMode && { responseBodyMode: fileValue(responseBodyMode) }),
    ...(requestTrailerMode && { requestTrailerMode: fileValue(requestTrailerMode) }),
    ...(responseTrailerMode && { responseTrailerMode: fileValue(responseTrailerMode) }),
    ...flags,
  }
}
