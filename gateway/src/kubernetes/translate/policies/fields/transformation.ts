import type {
  TransformationConfig,
  TransformationsConfig,
} from '../../../../policies/transformations/config.ts'
import type { Path } from '../../../../schema/path.ts'
import type { Changes, Transformation } from '../../../own-kinds/gateway-policy/transformation.ts'
import { headerMap, headerPath, repeatedHeaders } from './header-values.ts'
import { type Variant, variantsField } from './variants.ts'

/** `traffic.transformation`. */
export const transformationField = variantsField<Transformation, TransformationsConfig>({
  path: ['traffic', 'transformation'],
  place: 'transformations',
  select: ({ traffic }) => traffic?.transformation,
  translateOne: translateTransformation,
  policiesOf: (transformations) => ({ transformations }),
})

/** Translates a transformation; `path` is its path below `spec`. */
function translateTransformation(written: Transformation, path: Path): Variant<TransformationsConfig> {
  const { request, response } = written
  const mistakes = (['request', 'response'] as const).flatMap((phase) =>
    (['set', 'add'] as const).flatMap((list) =>
      repeatedHeaders(written[phase]?.[list], [...path, phase, list]),
    ),
  )
  return {
    config: {
      ...(request && { request: changesOf(request) }),
      ...(response && { response: changesOf(response) }),
    },
    resolved: { mistakes },
    rename(rest) {
      const [phase, list, name] = rest
      if ((phase !== 'request' && phase !== 'response') || name === undefined) return rest
      if (list !== 'set' && list !== 'add') return rest
      return [phase, list, ...headerPath(written[phase]?.[list], name)]
    },
  }
}

function changesOf({ set, add, ...others }: Changes): TransformationConfig {
  return { ...others, ...(add && { add: headerMap(add) }), ...(set && { set: headerMap(set) }) }
}
