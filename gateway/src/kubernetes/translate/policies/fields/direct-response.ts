import type { DirectResponseConfig } from '../../../../policies/direct-response.ts'
import type { Path } from '../../../../schema/path.ts'
import type { DirectResponse } from '../../../own-kinds/gateway-policy/direct-response.ts'
import { headerMap, headerPath, repeatedHeaders } from './header-values.ts'
import { type Variant, variantsField } from './variants.ts'

/** `traffic.directResponse`. */
export const directResponseField = variantsField<DirectResponse, DirectResponseConfig>({
  path: ['traffic', 'directResponse'],
  place: 'directResponse',
  select: ({ traffic }) => traffic?.directResponse,
  translateOne: translateDirectResponse,
  policiesOf: (directResponse) => ({ directResponse }),
})

function translateDirectResponse(
  { headers, ...others }: DirectResponse,
  path: Path,
): Variant<DirectResponseConfig> {
  return {
    config: { ...others, ...(headers && { headers: headerMap(headers) }) },
    resolved: { mistakes: repeatedHeaders(headers, [...path, 'headers']) },
    rename: ([field = '', name, ...rest]) =>
      field === 'headers' && name !== undefined
        ? [field, ...headerPath(headers, name)]
        : name === undefined
          ? [field]
          : [field, name, ...rest],
  }
}
