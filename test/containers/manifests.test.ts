// @module-tag quick
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { repository } from '../support/run-cli.ts'

/** The version of Kubernetes that workers are tested with too. */
const version = 'v1.33.13'
const folder = join(repository, 'env/kubernetes')

interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly additionalProperties?: Schema
  readonly 'x-kubernetes-group-version-kind'?: readonly { readonly group: string; readonly version: string; readonly kind: string }[]
}

const withoutGo = 'the description of the API comes with its module for Go; install Go: https://go.dev/dl'
const hasGo = spawnSync('go', ['version']).status === 0
let definitions: Readonly<Record<string, Schema>>
beforeAll(() => {
  if (!hasGo) return
  // The API's own description, from the module of its sources.
  const module = execFileSync('go', ['mod', 'download', '-json', `k8s.io/kubernetes@${version}`], { cwd: tmpdir(), encoding: 'utf8' })
  const file = join(JSON.parse(module).Dir, 'api/openapi-spec/swagger.json')
  definitions = JSON.parse(readFileSync(file, 'utf8')).definitions
})

/** Everything in which a value differs from its schema. */
function problems(value: unknown, schema: Schema, path: string): readonly string[] {
  if (schema.$ref) {
    const name = schema.$ref.replace('#/definitions/', '')
    const isNumberToo = /\.(?:Quantity|IntOrString)$/.test(name) && typeof value === 'number'
    return isNumberToo ? [] : problems(value, definitions[name]!, path)
  }
  if (schema.type === 'array')
    return Array.isArray(value)
      ? value.flatMap((each, index) => problems(each, schema.items!, `${path}[${index}]`))
      : [`${path} is no list`]
  if (schema.properties || schema.additionalProperties) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path} is no object`]
    const missing = (schema.required ?? []).filter((name) => !(name in value)).map((name) => `${path}.${name} is missing`)
    return [
      ...missing,
      ...Object.entries(value).flatMap(([name, each]) => {
        const property = schema.properties?.[name] ?? schema.additionalProperties
        return property ? problems(each, property, `${path}.${name}`) : [`${path}.${name} is unknown`]
      }),
    ]
  }
  const type = schema.type === 'integer' ? 'number' : (schema.type ?? 'object')
  return typeof value === type ? [] : [`${path} is no ${schema.type}`]
}

function check(object: { readonly apiVersion: string; readonly kind: string }): readonly string[] {
  const [version, group = ''] = object.apiVersion.split('/').toReversed()
  const schema = Object.values(definitions).find((each) =>
    each['x-kubernetes-group-version-kind']?.some((name) => name.group === group && name.version === version && name.kind === object.kind),
  )
  return schema ? problems(object, schema, object.kind) : [`There is no ${object.kind} in ${object.apiVersion}`]
}

const { resources }: { readonly resources: readonly string[] } = parse(readFileSync(join(folder, 'kustomization.yaml'), 'utf8'))
const objects = resources.flatMap((file) => parseAllDocuments(readFileSync(join(folder, file), 'utf8')).map((each) => each.toJS()))

it('every manifest is as the API describes it', ({ skip }) => {
  skip(!hasGo, withoutGo)
  expect(objects.map(({ kind }) => kind)).toEqual(['Service', 'Service', 'StatefulSet', 'NetworkPolicy'])
  expect(objects.flatMap(check)).toEqual([])
})

it('what the API does not know is found', ({ skip }) => {
  skip(!hasGo, withoutGo)
  const servers = objects.find(({ kind }) => kind === 'StatefulSet')
  const [container] = servers.spec.template.spec.containers
  const pod = { ...servers.spec.template.spec, hostUser: false, containers: [{ ...container, envv: [] }] }
  const changed = { ...servers, spec: { ...servers.spec, replicas: 'one', template: { ...servers.spec.template, spec: pod } } }
  expect(check(changed)).toEqual([
    'StatefulSet.spec.replicas is no integer',
    'StatefulSet.spec.template.spec.containers[0].envv is unknown',
    'StatefulSet.spec.template.spec.hostUser is unknown',
  ])
})
