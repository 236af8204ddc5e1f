import { Signpost } from 'lucide-react'
import { useParams } from 'wouter'
import { ButtonLink } from '../../components/action/button.tsx'
import { isObject } from '../../schema-form/model/value.ts'
import { ResourceEditor } from '../resources/resource-editor.tsx'
import { explainAddress } from './explain/explain-address.ts'
import { RoutePicture } from './route-picture.tsx'
import type { RouteValue } from './traffic-values.ts'

/** One HTTP route: a picture of its way, and its settings. */
export default function RoutePage() {
  const { id = '' } = useParams()
  const isNew = id === 'new'
  return (
    <ResourceEditor
      key={id}
      kind="traffic.route"
      id={isNew ? undefined : id}
      noun="route"
      path="/traffic/routes"
      about="Which requests it receives, the policies they pass, and where they go."
      initial={
        isNew ? { name: '', matches: [{ path: { pathPrefix: '/' } }], backends: [{ host: '' }] } : undefined
      }
      actions={({ value }) =>
        isObject(value) && (
          <ButtonLink icon={Signpost} href={explainAddress(value as RouteValue)}>
            Test it
          </ButtonLink>
        )
      }
      before={({ form }) => (isObject(form.value) ? <RoutePicture route={form.value as RouteValue} /> : null)}
    />
  )
}
