//! The manifests for Kubernetes and the templates for Azure: valid by themselves, and consistent with each other and
//! with the program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{done, program, shipped, told};

/// The Python installation of `.ci/manifests`.
fn python() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/manifests/bin/python3");
    if !python.exists() {
        crate::left_out::lacks("the schemas of Kubernetes");
    }
    python.exists().then_some(python)
}

fn reader(python: &Path) -> Command {
    let mut reader = Command::new(python);
    reader.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/deploy/manifests.py"));
    reader
}

fn documents(python: &Path, path: &str) -> Vec<Value> {
    let text = done(reader(python).arg(shipped(path)));
    serde_json::from_str(&text).unwrap()
}

/// The configuration as the program understands the text.
fn checked(text: &str, environment: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("allclear.toml");
    std::fs::write(&path, text).unwrap();
    done(Command::new(program()).args(["check", "--config"]).arg(path).envs(environment.iter().copied()))
}

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name} in {list}"))
}

/// Checks that each socket has a volume of its own.
fn the_databases_container_has_the_workloads_socket_alone(replica: &Value, database: &Value, file: &str) {
    let volume_at = |container: &Value, path: &str| {
        let mounts = container["volumeMounts"].as_array().unwrap();
        mounts.iter().find(|mount| mount["mountPath"] == path).map(|mount| mount["name"].clone())
    };
    assert!(file.contains("socket = \"/run/allclear-workloads/workloads.sock\""));
    let shared = volume_at(replica, "/run/allclear-workloads");
    assert!(shared.is_some() && shared == volume_at(database, "/run/allclear"));
    let own = volume_at(replica, "/run/allclear").unwrap();
    assert!(!database["volumeMounts"].as_array().unwrap().iter().any(|mount| mount["name"] == own));
}

#[test]
fn the_manifests_fit_the_schemas_each_other_and_the_program() {
    let Some(python) = python() else { return };
    let [configuration] = <[Value; 1]>::try_from(documents(&python, "kubernetes/configuration.yaml")).unwrap();
    let services = documents(&python, "kubernetes/service.yaml");
    let [set] = <[Value; 1]>::try_from(documents(&python, "kubernetes/statefulset.yaml")).unwrap();
    let pod = &set["spec"]["template"];
    let replica = named(&pod["spec"]["containers"], "allclear");

    let file = configuration["data"]["allclear.toml"].as_str().unwrap();
    let name = named(&replica["env"], "ALLCLEAR__REPLICA__NAME");
    assert_eq!(name["valueFrom"]["fieldRef"]["fieldPath"], "spec.nodeName");
    let shown = checked(file, &[("ALLCLEAR__REPLICA__NAME", "vm-1")]);
    assert!(shown.contains("vm-1"), "{shown}");

    // peer addresses: pod.service:port
    let headless = services.iter().find(|service| service["kind"] == "Service").unwrap();
    assert_eq!(
        (&headless["spec"]["clusterIP"], &set["spec"]["serviceName"]),
        (&"None".into(), &headless["metadata"]["name"])
    );
    for number in 0..set["spec"]["replicas"].as_u64().unwrap() {
        let address = format!(
            "{}-{number}.{}:7420",
            set["metadata"]["name"].as_str().unwrap(),
            headless["metadata"]["name"].as_str().unwrap()
        );
        assert!(file.contains(&address), "{address}");
    }
    for policy in &services {
        let spec = &policy["spec"];
        let selector = [&spec["selector"], &spec["selector"]["matchLabels"], &spec["podSelector"]["matchLabels"]];
        assert!(selector.contains(&&pod["metadata"]["labels"]), "{policy}");
    }

    // ports and paths
    for (port, key) in [(7420, "cluster"), (7421, "status")] {
        assert!(replica["ports"].as_array().unwrap().iter().any(|one| one["containerPort"] == port), "{port}");
        let section = file.split(&format!("[{key}]")).nth(1).unwrap();
        assert!(section.split("\n[").next().unwrap().contains(&format!("0.0.0.0:{port}")), "{key} on {port}");
    }
    for (probe, path) in [("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
        let asked = &replica[probe]["httpGet"];
        assert_eq!(asked["path"], path);
        assert_eq!(named(&replica["ports"], asked["port"].as_str().unwrap())["containerPort"], 7421);
        let served =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/http/server.rs")).unwrap();
        assert!(served.contains(&format!(".route(\"{path}\"")), "{path}");
    }
    let mounted = |container: &Value, path: &str| {
        container["volumeMounts"].as_array().unwrap().iter().any(|mount| mount["mountPath"] == path)
    };
    let database = named(&pod["spec"]["containers"], "database");
    the_databases_container_has_the_workloads_socket_alone(replica, database, file);
    assert!(mounted(replica, "/var/lib/allclear") && file.contains("data_dir = \"/var/lib/allclear\""));
    let arguments: Vec<&str> = replica["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(arguments, ["run", "--config", "/etc/allclear/allclear.toml"]);
    assert!(mounted(replica, "/etc/allclear"));

    // users
    let dockerfile = std::fs::read_to_string(shipped("container/Dockerfile")).unwrap();
    let user = &replica["securityContext"]["runAsUser"];
    assert!(dockerfile.contains(&format!("USER {user}:{user}")));
    assert_eq!(&pod["spec"]["securityContext"]["fsGroup"], user, "the group of workloads.sock");
    let database_user = &database["securityContext"]["runAsUser"];
    assert!(file.contains(&format!("allow_uids = [{database_user}]")));
}

#[test]
fn a_manifest_that_does_not_fit_the_schema_is_refused() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.yaml");
    let text = std::fs::read_to_string(shipped("kubernetes/statefulset.yaml")).unwrap();
    std::fs::write(&wrong, text.replace("podManagementPolicy", "podManagmentPolicy")).unwrap();
    let output = reader(&python).arg(&wrong).output().unwrap();
    assert!(!output.status.success() && told(&output).contains("podManagmentPolicy"), "{}", told(&output));
}

#[test]
fn cloud_init_writes_a_configuration_that_the_program_takes() {
    let Some(python) = python() else { return };
    let [config] = <[Value; 1]>::try_from(documents(&python, "azure/cloud-init.yaml")).unwrap();
    let file = &config["write_files"][0];
    assert_eq!(file["path"], "/etc/allclear/allclear.toml");
    let replicas = r#"db-0 = "10.0.0.4:7420", db-1 = "10.0.0.5:7420""#;
    let shown = checked(&file["content"].as_str().unwrap().replace("@@REPLICAS@@", replicas), &[]);
    assert!(shown.contains("10.0.0.5:7420"), "{shown}");
}

/// The names declared by a template, and the names in use; not a Bicep compiler, which is not installed everywhere.
fn names(text: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let words = |text: &str| -> Vec<String> {
        text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').map(str::to_owned).collect()
    };
    let mut declared = BTreeSet::new();
    let mut used = BTreeSet::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//") && !line.starts_with('@')) {
        let parts: Vec<&str> = line.split_whitespace().collect();
        if let ["param" | "var" | "resource" | "output", name, ..] = parts.as_slice() {
            declared.insert((*name).to_owned());
        }
        // code outside of quotes, and interpolations inside quotes
        for (at, part) in line.split('\'').enumerate() {
            let code = if at % 2 == 0 {
                part.to_owned()
            } else {
                part.split("${").skip(1).map(|rest| rest.split('}').next().unwrap()).collect::<Vec<_>>().join(" ")
            };
            let value = if at == 0 {
                code.split_once([':', '=']).map_or(code.as_str(), |(_, value)| value).to_owned()
            } else {
                code
            };
            used.extend(
                words(&value).into_iter().filter(|word| word.starts_with(|letter: char| letter.is_lowercase())),
            );
        }
    }
    (declared, used)
}

/// Names of the language and properties of resources.
const KNOWN: &[&str] = &[
    "array",
    "base64",
    "concat",
    "dependsOn",
    "empty",
    "existing",
    "false",
    "for",
    "i",
    "id",
    "if",
    "in",
    "int",
    "ipAddress",
    "join",
    "loadTextContent",
    "location",
    "map",
    "null",
    "object",
    "output",
    "param",
    "properties",
    "range",
    "false",
    "replace",
    "resource",
    "resourceGroup",
    "resourceId",
    "string",
    "subnets",
    "true",
    "var",
];

#[test]
fn templates_use_only_what_they_declare_and_close_what_they_open() {
    for template in ["azure/availability-set.bicep", "azure/scale-set.bicep"] {
        let text = std::fs::read_to_string(shipped(template)).unwrap();
        let (declared, used) = names(&text);
        let unknown: Vec<_> =
            used.iter().filter(|name| !declared.contains(*name) && !KNOWN.contains(&name.as_str())).collect();
        assert!(unknown.is_empty(), "{template}: {unknown:?}");
        let unused: Vec<_> =
            declared.iter().filter(|name| !used.contains(*name) && !text.contains(&format!("output {name}"))).collect();
        assert!(unused.iter().all(|name| text.contains(&format!("resource {name}"))), "{template}: {unused:?}");
        let mut open = Vec::new();
        for letter in text.chars() {
            match letter {
                '{' | '[' | '(' => open.push(letter),
                '}' | ']' | ')' => assert_eq!(
                    open.pop(),
                    Some(match letter {
                        '}' => '{',
                        ']' => '[',
                        _ => '(',
                    }),
                    "{template}"
                ),
                _ => {}
            }
        }
        assert!(open.is_empty(), "{template}: {open:?}");
        // Azure would approve these events itself, before any hook has run.
        let policy = text.split_once("scheduledEventsPolicy: {").unwrap_or_else(|| panic!("{template}: no policy")).1;
        for kind in ["userInitiatedReboot", "userInitiatedRedeploy", "allInstancesDown"] {
            let of_kind = policy.split_once(&format!("{kind}: {{")).unwrap_or_else(|| panic!("{template}: {kind}")).1;
            assert!(of_kind.trim_start().starts_with("automaticallyApprove: false"), "{template}: {kind}");
        }
        assert!(shipped("azure/cloud-init.yaml").exists() && text.contains("loadTextContent('cloud-init.yaml')"));
    }
    let (declared, used) = names("param count int\nvar names = [for i in range(0, cuont): 'db-${i}']\n");
    assert!(declared.contains("count") && used.contains("cuont"), "a name that is misspelt is seen");
}
